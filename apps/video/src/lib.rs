//! Scalable video in real time (HotNets 2023, §3.3): pictures in layers, each layer of each frame a message.
//!
//! - [`adaptation`]: rates that follow the channels.
//! - [`clip`]: what an encoder made of a clip: the bytes of each layer, and how good pictures are with and without it.
//! - [`gate`]: which layers a sender hands over when, so that the best one holds up none below it.
//! - [`layers`]: which layers of a frame there are, and which of them can be decoded.
//! - [`message`]: how a layer travels, with what priority and until when it is of use.
//! - [`playout`]: when a receiver decodes which frame with which layers.
//! - [`freeze`]: when a viewer sees the picture stand still.
//! - [`fragment`]: layers in datagrams.
//! - [`rtp`], [`roq`]: pictures as players and servers of others read them, over QUIC.
//! - [`superframe`], [`picture`], [`ssim`], [`y4m`]: what comes out of an encoder and goes into it, and how alike two
//!   pictures are.
//!
//! - `vpx`: VP9 in quality layers by libvpx, with the feature of that name.
//!
//! None of this does input or output, or reads a clock: the same code runs in virtual time and over sockets. Only `session`
//! does, with the feature of that name: videos over connections, from files and cameras to files, windows and pages.

pub mod adaptation;
pub mod clip;
pub mod fragment;
pub mod freeze;
pub mod gate;
pub mod layers;
pub mod message;
pub mod picture;
pub mod playout;
pub mod roq;
pub mod rtp;
#[cfg(feature = "session")]
pub mod session;
pub mod ssim;
pub mod superframe;
#[cfg(feature = "vpx")]
pub mod vpx;
pub mod y4m;
