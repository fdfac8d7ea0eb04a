//! The ways of sending video over two channels that are compared.

use crate::experiment::pages;
use crate::workload::video::MessageHints;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A way of using the channels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum VideoScheme {
    /// Packets without a transport, as the paper sent them.
    Packets(Steering),
    /// Over the transport.
    Transport(pages::Scheme, MessageHints),
}

/// The channel that packets without a transport take.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Steering {
    /// To eMBB.
    Embb,
    /// The channel that DChannel's rule chooses (NSDI 2023, Algorithm 1).
    DChannel,
    /// URLLC for the packets of base layers, eMBB for all others.
    Priority,
}

impl Steering {
    const ALL: [(&'static str, Self); 3] =
        [("embb", Self::Embb), ("dchannel", Self::DChannel), ("priority", Self::Priority)];
}

const VOICES: [(&str, MessageHints); 2] =
    [("+priorities", MessageHints::Priorities), ("+deadlines", MessageHints::Deadlines)];

impl fmt::Display for VideoScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(steering) => {
                let named = Steering::ALL.iter().find(|(_, known)| known == steering);
                write!(f, "udp:{}", named.map_or("", |(name, _)| name))
            }
            Self::Transport(scheme, voice) => {
                let named = VOICES.iter().find(|(_, known)| known == voice);
                write!(f, "{scheme}{}", named.map_or("", |(name, _)| name))
            }
        }
    }
}

impl FromStr for VideoScheme {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if let Some(steering) = name.strip_prefix("udp:") {
            let found = Steering::ALL.iter().find(|(known, _)| *known == steering);
            let names = Steering::ALL.map(|(name, _)| name).join(", ");
            let wrong =
                || format!("packets go by no rule called {steering:?}: choose udp: and one of {names}");
            return found.map(|(_, steering)| Self::Packets(*steering)).ok_or_else(wrong);
        }
        let told = VOICES.iter().find_map(|(suffix, voice)| Some((name.strip_suffix(suffix)?, *voice)));
        let (scheme, voice) = told.unwrap_or((name, MessageHints::Silent));
        let scheme = scheme
            .parse()
            .map_err(|error| format!("{error}; or udp:NAME for packets without a transport"))?;
        Ok(Self::Transport(scheme, voice))
    }
}

impl From<VideoScheme> for String {
    fn from(scheme: VideoScheme) -> Self {
        scheme.to_string()
    }
}

impl TryFrom<String> for VideoScheme {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}
