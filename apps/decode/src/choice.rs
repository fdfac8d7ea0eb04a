//! The choice of packets and frames that are shown.

use crate::packet::Packet;
use hvq_transport::PathId;
use hvq_transport::wire::frame::types;

/// The choice of packets and frames that are shown. By default all are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Choice {
    /// Only packets of these paths, if any is named.
    pub paths: Vec<PathId>,
    /// Only frames of these kinds, and packets that hold any, if a kind is named.
    pub frames: Vec<String>,
    /// Only this connection, counted from 0, if one is named.
    pub connection: Option<usize>,
}

/// Reads a kind of frames, as [`Choice::frames`] has it.
///
/// # Errors
/// There is no such kind; the text names those that there are.
pub fn kind(text: &str) -> Result<String, String> {
    let names = types::names();
    match names.contains(text) {
        true => Ok(text.to_owned()),
        false => {
            let names: Vec<_> = names.into_iter().collect();
            Err(format!("there are frames of the kinds {}", names.join(", ")))
        }
    }
}

impl Choice {
    /// Returns the part of `packet` that is to be shown, if there is one.
    pub fn choose(&self, mut packet: Packet) -> Option<Packet> {
        if !self.paths.is_empty() && !packet.path.is_some_and(|path| self.paths.contains(&path)) {
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
    use crate::packet::{Contents, Header, Kind};
    use hvq_transport::wire::frame::Frame;
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
            header: Header::EMPTY,
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
        let all = Choice::default();
        assert_eq!(all.choose(packet(1)), Some(packet(1)));
        let path = Choice { paths: [1, 2].map(PathId).to_vec(), ..all.clone() };
        assert!(path.choose(packet(2)).is_some() && path.choose(packet(0)).is_none());
        let pings = Choice { frames: vec!["ping".to_owned()], ..all.clone() };
        assert_eq!(pings.choose(packet(0)).unwrap().contents.frames, [Frame::Ping]);
        let streams = Choice { frames: vec!["stream".to_owned()], ..all.clone() };
        assert_eq!(streams.choose(packet(0)), None);
        let connection = Choice { connection: Some(1), ..all };
        assert_eq!(connection.choose(packet(0)), None);
    }
}
