//! One module for each command: its arguments and what it does.

pub(crate) mod decode;
pub(crate) mod emulate;
pub(crate) mod gateway;
pub(crate) mod get;
#[cfg(target_os = "linux")]
pub(crate) mod inside;
pub(crate) mod lab;
pub(crate) mod manual;
#[cfg(unix)]
pub(crate) mod paths;
pub(crate) mod proxy;
#[cfg(target_os = "linux")]
pub(crate) mod run;
pub(crate) mod serve;
#[cfg(target_os = "linux")]
pub(crate) mod tunnel;
#[cfg(target_os = "linux")]
pub(crate) mod up;
#[cfg(feature = "video")]
pub(crate) mod video;
