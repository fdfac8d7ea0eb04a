//! Experiments in virtual time: the protocol as it is, over channels of the model, faster than the clock.
//!
//! - [`world`]: a client and a server endpoint and the channels between them. Everything follows from a seed.
//! - [`workload`]: applications for both ends.
//! - [`experiment`]: what is varied, run and measured.
//! - [`pages`]: what pages consist of, and a loader that walks through one.
//! - [`report`]: tables and drawings of it.
//! - `command`, with the feature of that name: the commands of `hvq lab`.

#[cfg(feature = "command")]
pub mod command;
pub mod experiment;
pub mod names;
pub mod pages;
pub mod report;
pub mod workload;
pub mod world;

/// The guide for a first experiment, whose policy `cargo test` compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/first-experiment.md")]
struct Guide;
