//! Depends on the published programs, so that cargo finds them.
