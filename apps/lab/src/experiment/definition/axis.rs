//! The things that can be varied.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A thing that can be varied, in the order in which runs vary it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// The place where connections end.
    Deployment,
    /// The channel with the high bandwidth.
    Embb,
    /// The channel with the low latency.
    Urllc,
    /// The links of the device, in the place of eMBB and URLLC.
    Links,
    /// The order in which connections are told of the channels.
    Order,
    /// Random loss in both directions of both channels.
    Loss,
    /// The congestion controller of every path.
    Controller,
    /// The information that applications give the transport.
    Voice,
    /// The knowledge of the channels, right or wrong.
    Belief,
    /// The size of downloads.
    Size,
    /// Flows in the background of a page load.
    Background,
    /// The use of an app.
    Interaction,
}

impl Axis {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Deployment,
        Self::Embb,
        Self::Urllc,
        Self::Links,
        Self::Order,
        Self::Loss,
        Self::Controller,
        Self::Voice,
        Self::Belief,
        Self::Size,
        Self::Background,
        Self::Interaction,
    ];

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deployment => "deployment",
            Self::Embb => "embb",
            Self::Urllc => "urllc",
            Self::Links => "links",
            Self::Order => "order",
            Self::Loss => "loss",
            Self::Controller => "controller",
            Self::Voice => "voice",
            Self::Belief => "belief",
            Self::Size => "size",
            Self::Background => "background",
            Self::Interaction => "interaction",
        }
    }

    /// Its field in files, with the table.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Deployment => "matrix.deployment",
            Self::Embb => "matrix.embb",
            Self::Urllc => "matrix.urllc",
            Self::Links => "matrix.links",
            Self::Order => "matrix.order",
            Self::Loss => "matrix.loss",
            Self::Controller => "matrix.controller",
            Self::Voice => "matrix.voice",
            Self::Belief => "matrix.belief",
            Self::Size => "matrix.size",
            Self::Background => "matrix.background",
            Self::Interaction => "matrix.interaction",
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Embb => "eMBB",
            Self::Urllc => "URLLC",
            other => other.name(),
        })
    }
}
