//! One module for each command: its arguments and what it does.

pub(crate) mod decode;
pub(crate) mod demo;
pub(crate) mod emulate;
pub(crate) mod gateway;
pub(crate) mod get;
pub(crate) mod lab;
pub(crate) mod proxy;
pub(crate) mod serve;
pub(crate) mod svc;
