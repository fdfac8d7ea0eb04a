//! Mechanisms that clients and servers share (RFC 9114): settings, unidirectional streams, messages, priorities.

mod compression;
pub(crate) mod control;
mod departure;
pub(crate) mod fields;
mod frames;
mod origin_set;
mod own_stream;
pub(crate) mod priorities;
pub(crate) mod receiving;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod sending;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod shared;
