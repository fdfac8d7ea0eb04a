//! Two endpoints in virtual time over links with a delay: the smallest network that shows a connection at work.

mod basics;
mod gate;
mod network;
mod paths;
mod resets;
mod tokens;
mod versions;
