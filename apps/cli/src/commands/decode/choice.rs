//! The choice of packets and frames that are shown.

use clap::Args;
use hvq::transport::wire::frame::types;
use hvq_decode::Packet;

/// The choice of packets and frames that are shown.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct ChoiceArguments {
    /// Only packets of this path; may be repeated
    #[arg(long = "path", value_name = "NUMBER")]
    paths: Vec<u32>,
    /// Only frames of these kinds, such as stream,path_ack, and packets that hold any
    #[arg(long, value_name = "KIND,…", value_delimiter = ',', value_parser = kind)]
    frames: Vec<String>,
    /// Only this connection, counted from 0
    #[arg(long, value_name = "NUMBER")]
    connection: Option<usize>,
}

/// Reads a kind of frames.
fn kind(text: &str) -> Result<String, String> {
    let names = types::names();
    match names.contains(text) {
        true => Ok(text.to_owned()),
        false => {
            let names: Vec<_> = names.into_iter().collect();
            Err(format!("there are frames of the kinds {}", names.join(", ")))
        }
    }
}

impl ChoiceArguments {
    /// Returns the part of `packet` that is to be shown, if there is one.
    pub(super) fn choose(&self, mut packet: Packet) -> Option<Packet> {
        if !self.paths.is_empty() && !packet.path.is_some_and(|path| self.paths.contains(&path.0)) {
            return None;
        }
        if self.connection.is_some() && packet.connection != self.connection {
            return None;
        }
        if !self.frames.is_empty() {
            packet.contents.frames.retain(|frame| self.frames.iter().any(|kind| kind == frame.kind()));
            if packet.contents.frames.is_empty() {
                return None;
            }
        }
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq::PathId;
    use hvq::transport::wire::frame::Frame;
    use hvq_decode::{Contents, Kind};
    use std::time::Duration;

    fn packet(path: u32) -> Packet {
        Packet {
            at: Duration::ZERO,
            source: "10.0.0.1:1".parse().unwrap(),
            destination: "10.0.0.2:2".parse().unwrap(),
            connection: Some(0),
            sender: None,
            path: Some(PathId(path)),
            kind: Kind::OneRtt,
            header: hvq_decode::Header::EMPTY,
            token: Default::default(),
            key_updates: 0,
            number: Some(1),
            bytes: 40,
            contents: Contents { frames: vec![Frame::Ping, Frame::MaxData(9)], ..Contents::default() },
        }
    }

    #[test]
    fn kinds_are_those_that_frames_have() {
        assert_eq!(kind(Frame::Ping.kind()).as_deref(), Ok("ping"));
        assert!(kind("streams").unwrap_err().contains("stream, stream_data_blocked"));
    }

    #[test]
    fn paths_and_kinds_of_frames_can_be_chosen() {
        let all = ChoiceArguments::default();
        assert_eq!(all.choose(packet(1)), Some(packet(1)));
        let path = ChoiceArguments { paths: vec![1, 2], ..all.clone() };
        assert!(path.choose(packet(2)).is_some() && path.choose(packet(0)).is_none());
        let pings = ChoiceArguments { frames: vec!["ping".to_owned()], ..all.clone() };
        assert_eq!(pings.choose(packet(0)).unwrap().contents.frames, [Frame::Ping]);
        let streams = ChoiceArguments { frames: vec!["stream".to_owned()], ..all.clone() };
        assert_eq!(streams.choose(packet(0)), None);
        let connection = ChoiceArguments { connection: Some(1), ..all };
        assert_eq!(connection.choose(packet(0)), None);
    }
}
