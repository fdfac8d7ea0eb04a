//! The results of the demo: plain data, and its JSON.

use super::scheme::{ChannelName, Scheme};
use serde::Serialize;

/// Everything that was measured, and how.
#[derive(Clone, Debug, Serialize)]
pub struct DemoResults {
    /// The version of this program.
    pub(super) version: &'static str,
    /// The setup of the measurement.
    pub(super) setup: Setup,
    /// The pages.
    pub(super) pages: Vec<PageFacts>,
    /// The schemes that were compared.
    pub(super) schemes: Vec<Scheme>,
    /// The loads, in the order in which they took place.
    pub(super) loads: Vec<Load>,
}

impl DemoResults {
    /// The number of loads.
    pub fn loads(&self) -> usize {
        self.loads.len()
    }

    /// The number of loads that failed.
    pub fn failed(&self) -> usize {
        self.loads.iter().filter(|load| load.load_time().is_none()).count()
    }
}

/// The setup of a measurement.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Setup {
    /// The trace of eMBB.
    pub(super) trace: String,
    /// eMBB without its offset, in the text form of a channel.
    pub(super) embb: String,
    /// URLLC.
    pub(super) urllc: String,
    /// The hints about eMBB for both ends.
    pub(super) embb_hints: String,
    /// The hints about URLLC for both ends.
    pub(super) urllc_hints: String,
    /// The congestion control of each path.
    pub(super) congestion: String,
    /// The factor on recorded thinking times of the browser and of servers.
    pub(super) think_scale: f64,
    /// The seed.
    pub(super) seed: u64,
    /// Loads of each page with each scheme.
    pub(super) repetitions: usize,
}

/// Facts about a page.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PageFacts {
    /// Its short name.
    pub(super) id: String,
    /// The site that was captured.
    pub(super) site: String,
    /// Objects that the load waits for.
    pub(super) objects: usize,
    /// Their bytes.
    pub(super) bytes: u64,
}

/// One load of one page.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Load {
    /// The page.
    pub(super) page: String,
    /// The scheme that used the channels.
    pub(super) scheme: Scheme,
    /// The number of the repetition, counted from 1.
    pub(super) repetition: usize,
    /// The start of the load in the trace, in seconds.
    pub(super) offset_s: f64,
    /// The page load time in milliseconds, or why there is none.
    pub(super) outcome: LoadOutcome,
    /// From the start to the end of the handshake, in milliseconds.
    pub(super) connect_ms: f64,
    /// The times of each object.
    pub(super) objects: Vec<ObjectTiming>,
    /// The traffic of each channel.
    pub(super) channels: Vec<ChannelUse>,
}

/// The outcome of a load.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LoadOutcome {
    /// The page was there after this time, in milliseconds.
    LoadedMs(f64),
    /// It never was.
    Failed(String),
}

impl Load {
    /// The page load time in milliseconds.
    pub(super) fn load_time(&self) -> Option<f64> {
        match self.outcome {
            LoadOutcome::LoadedMs(milliseconds) => Some(milliseconds),
            LoadOutcome::Failed(_) => None,
        }
    }

    /// Returns the traffic of `channel`; nothing if it was not used.
    pub(super) fn channel(&self, channel: ChannelName) -> Option<&ChannelUse> {
        self.channels.iter().find(|used| used.channel == channel)
    }
}

/// The times of an object, in milliseconds since the start of the load.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ObjectTiming {
    /// Its number.
    pub(super) id: u32,
    /// The kind of object.
    pub(super) kind: String,
    /// Its bytes.
    pub(super) bytes: u64,
    /// The time of its request.
    pub(super) requested_ms: Option<f64>,
    /// The time at which the response began.
    pub(super) first_byte_ms: Option<f64>,
    /// The time at which it ended.
    pub(super) end_ms: Option<f64>,
}

/// The traffic of a channel during a load.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ChannelUse {
    /// The channel.
    pub(super) channel: ChannelName,
    /// Bytes of UDP payload that the client sent.
    pub(super) up_bytes: u64,
    /// Bytes of UDP payload that the server sent.
    pub(super) down_bytes: u64,
    /// Packets that the channel dropped, both ways.
    pub(super) dropped: u64,
    /// Frames by kind, both ways.
    pub(super) frames: Vec<FrameCount>,
    /// Bytes over time, both ways.
    pub(super) series: Series,
}

/// Frames of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct FrameCount {
    /// Their name in the RFC.
    pub(super) kind: &'static str,
    /// The number of frames that were sent.
    pub(super) frames: u64,
    /// Their bytes.
    pub(super) bytes: u64,
}

/// Bytes over time by group, in buckets of [`BUCKET_MS`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Series {
    /// From client to server.
    pub(super) up: Vec<[u64; Group::COUNT]>,
    /// From server to client.
    pub(super) down: Vec<[u64; Group::COUNT]>,
}

/// The width of a bucket in milliseconds.
pub(super) const BUCKET_MS: u64 = 20;

/// Frames that serve the same end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Group {
    /// STREAM and DATAGRAM.
    Data,
    /// ACK and PATH_ACK.
    Acknowledgement,
    /// CRYPTO and what ends the handshake.
    Handshake,
    /// Paths and connection IDs.
    Paths,
    /// Flow control, PING, CLOSE and the like.
    Control,
    /// Packet headers, tags and padding.
    Overhead,
}

impl Group {
    /// The number of groups.
    pub(super) const COUNT: usize = 6;
    /// All of them, in the order of [`Series`].
    pub(super) const ALL: [Self; Self::COUNT] =
        [Self::Data, Self::Acknowledgement, Self::Handshake, Self::Paths, Self::Control, Self::Overhead];

    /// The group of the frames called `kind` in the RFCs.
    pub(super) fn of(kind: &str) -> Self {
        match kind {
            "stream" | "datagram" => Self::Data,
            "ack" | "path_ack" => Self::Acknowledgement,
            "crypto" | "new_token" | "handshake_done" => Self::Handshake,
            "padding" => Self::Overhead,
            "max_path_id" | "paths_blocked" | "new_connection_id" | "retire_connection_id" => Self::Paths,
            kind if kind.starts_with("path_") => Self::Paths,
            _ => Self::Control,
        }
    }

    /// Returns the name of the group, for people.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Data => "stream data",
            Self::Acknowledgement => "acknowledgements",
            Self::Handshake => "handshake",
            Self::Paths => "paths and connection IDs",
            Self::Control => "other control",
            Self::Overhead => "packet headers and padding",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_frame_has_a_group() {
        for (kind, group) in [
            ("stream", Group::Data),
            ("path_ack", Group::Acknowledgement),
            ("path_challenge", Group::Paths),
            ("path_cids_blocked", Group::Paths),
            ("handshake_done", Group::Handshake),
            ("max_stream_data", Group::Control),
            ("padding", Group::Overhead),
        ] {
            assert_eq!(Group::of(kind), group, "{kind}");
        }
        assert!(Group::ALL.iter().enumerate().all(|(index, group)| *group as usize == index));
    }
}
