//! Hostile peers for tests of the endpoint: what a connection says that it never would by itself, and takes as if it had come.

mod forced;
mod inject;
