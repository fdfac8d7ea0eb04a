//! Packets and frames for people and for programs.

use crate::packet::{Extension, Packet};
use hvq_transport::PathId;
use hvq_transport::connection::Role;
use hvq_transport::scheduler::{Hints, Metering, Sharing};
use hvq_transport::stream::Direction;
use hvq_transport::wire::frame::{Ack, ConnectionClose, Frame};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

/// Ranges of an acknowledgement that are shown.
const MOST_RANGES: usize = 4;
/// The exponent of acknowledgement delays if the parameters, which are not read, say nothing else (RFC 9000 §18.2).
const DELAY_EXPONENT: u8 = 3;

/// One line for `packet`, whose capture began at `start`.
pub fn describe(packet: &Packet, start: Duration) -> String {
    let time = packet.at.saturating_sub(start).as_secs_f64() * 1e3;
    let connection = packet.connection.map_or("c?".to_owned(), |index| format!("c{index}"));
    let sender = match packet.sender {
        Some(Role::Client) => "client →",
        Some(Role::Server) => "server →",
        None => "?",
    };
    let path = packet.path.map_or("path ?".to_owned(), |path| format!("path {path}"));
    let number = packet.number.map_or(String::new(), |number| format!("#{number}"));
    let mut line = format!(
        "{time:>12.3} ms  {connection:<3} {sender:<8} {path:<7} {:<10} {number:>7} {:>5} B  ",
        packet.kind.name(),
        packet.bytes,
    );
    let frames = packet.contents.frames.iter().map(frame);
    let frames: Vec<_> = frames.chain(packet.contents.extensions.iter().map(extension)).collect();
    line.push_str(&frames.join(", "));
    if packet.sender.is_none() {
        let _ = write!(line, "{} → {} ", packet.source, packet.destination);
    }
    if let Some(problem) = &packet.contents.problem {
        let _ = write!(line, "[{problem}]");
    }
    line.trim_end().to_owned()
}

/// One object of JSON for `packet`: times in seconds since 1970, frames as qlog has them.
pub fn json(packet: &Packet) -> Value {
    let frames = packet.contents.frames.iter().map(|frame| hvq_qlog::frame(frame, DELAY_EXPONENT));
    let extensions = packet.contents.extensions.iter().map(|extension| match extension {
        Extension::TimeStamp(time) => json!({ "frame_type": "time_stamp", "time_stamp": time }),
    });
    json!({
        "time": packet.at.as_secs_f64(),
        "source": packet.source.to_string(),
        "destination": packet.destination.to_string(),
        "connection": packet.connection,
        "from": packet.sender.map(role),
        "path": packet.path.map(|path| path.0),
        "type": packet.kind.name(),
        "number": packet.number,
        "bytes": packet.bytes,
        "frames": frames.chain(extensions).collect::<Vec<_>>(),
        "problem": packet.contents.problem.as_ref().map(ToString::to_string),
    })
}

/// Returns the name of an end.
pub(crate) fn role(role: Role) -> &'static str {
    match role {
        Role::Client => "client",
        Role::Server => "server",
    }
}

/// A frame in a few words: its name in lower case, then what matters.
fn frame(frame: &Frame) -> String {
    let kind = frame.kind();
    match frame {
        Frame::Padding(length) => format!("padding×{length}"),
        Frame::Ack(ack) => format!("{kind} {}", acknowledgement(ack)),
        Frame::ResetStream(reset) => {
            format!("{kind} {} code {:#x} size {}", reset.id.0, reset.error, reset.final_size)
        }
        Frame::ResetStreamAt(reset) => {
            let sizes = format!("size {} reliable {}", reset.final_size, reset.reliable_size);
            format!("{kind} {} code {:#x} {sizes}", reset.id.0, reset.error)
        }
        Frame::StopSending(stop) => format!("{kind} {} code {:#x}", stop.id.0, stop.error),
        Frame::Crypto(crypto) => format!("{kind} {}", range(crypto.offset, crypto.data.len())),
        Frame::NewToken(token) => format!("{kind} {} B", token.len()),
        Frame::Stream(stream) => {
            let fin = if stream.fin { " fin" } else { "" };
            format!("{kind} {} {}{fin}", stream.id.0, range(stream.offset, stream.data.len()))
        }
        Frame::MaxData(limit) | Frame::DataBlocked(limit) => format!("{kind} {limit}"),
        Frame::MaxStreamData { id, limit } | Frame::StreamDataBlocked { id, limit } => {
            format!("{kind} {} {limit}", id.0)
        }
        Frame::MaxStreams { direction, limit } | Frame::StreamsBlocked { direction, limit } => {
            let direction = match direction {
                Direction::Bidirectional => "bidi",
                Direction::Unidirectional => "uni",
            };
            format!("{kind} {direction} {limit}")
        }
        Frame::NewConnectionId(new) => {
            format!("{kind}{} seq {} {}", of(new.path), new.sequence, new.id)
        }
        Frame::RetireConnectionId { path, sequence } => format!("{kind}{} seq {sequence}", of(*path)),
        Frame::ConnectionClose(close) => format!("{kind} {}", connection_close(close)),
        Frame::Datagram(data) => format!("{kind} {} B", data.len()),
        Frame::PathAbandon { path, error } => format!("{kind} path {path} code {error:#x}"),
        Frame::PathStatus { path, sequence, .. } => format!("{kind} path {path} seq {sequence}"),
        Frame::MaxPathId(limit) | Frame::PathsBlocked(limit) => format!("{kind} {limit}"),
        Frame::PathCidsBlocked { path, next_sequence } => format!("{kind} path {path} seq {next_sequence}"),
        Frame::PathHints(told) => {
            format!("{kind} path {} seq {}{}", told.path, told.sequence, hints(&told.hints))
        }
        Frame::AckFrequency(request) => {
            format!("{kind} seq {} every {} or {:?}", request.sequence, request.threshold, request.max_delay)
        }
        Frame::PathChallenge(_) | Frame::PathResponse(_) => kind.to_owned(),
        Frame::Ping | Frame::HandshakeDone | Frame::ImmediateAck => kind.to_owned(),
    }
}

/// Everything that is said of a channel, with rates from the sender's side.
fn hints(hints: &Hints) -> String {
    let sharing = match hints.shared {
        Sharing::Unknown => None,
        Sharing::Shared => Some("shared"),
        Sharing::Endpoint => Some("endpoint's own"),
        Sharing::Dedicated => Some("dedicated"),
    };
    let metering = match hints.metering {
        Metering::Unknown => None,
        Metering::Unmetered => Some("unmetered"),
        Metering::Metered => Some("metered"),
    };
    let said = [
        hints.rate.map(|rate| format!("from sender {rate}")),
        hints.rate_back.map(|rate| format!("to sender {rate}")),
        hints.delay.map(|delay| format!("delay {delay:?}")),
        hints.loss.map(|loss| format!("loss {}‰", loss.get())),
        hints.price_per_byte.map(|price| format!("price {price}")),
        sharing.map(str::to_owned),
        metering.map(str::to_owned),
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    if said.is_empty() { " taken back".to_owned() } else { format!(" {}", said.join(", ")) }
}

/// A frame of an extension in a few words.
fn extension(extension: &Extension) -> String {
    match extension {
        Extension::TimeStamp(time) => format!("time_stamp {time}"),
    }
}

fn range(offset: u64, length: usize) -> String {
    format!("{offset}+{length}")
}

fn of(path: Option<PathId>) -> String {
    path.map_or(String::new(), |path| format!(" path {path}"))
}

fn acknowledgement(ack: &Ack) -> String {
    let mut text = ack.path.map_or(String::new(), |path| format!("path {path} "));
    for (index, range) in ack.ranges.iter().take(MOST_RANGES).enumerate() {
        let separator = if index == 0 { "" } else { " " };
        let _ = match range.into_inner() {
            (first, last) if first == last => write!(text, "{separator}{first}"),
            (first, last) => write!(text, "{separator}{first}-{last}"),
        };
    }
    if ack.ranges.count() > MOST_RANGES as u64 {
        text.push_str(" …");
    }
    if let Some(ecn) = ack.ecn.filter(|ecn| ecn.ce > 0) {
        let _ = write!(text, " ce {}", ecn.ce);
    }
    text
}

fn connection_close(close: &ConnectionClose) -> String {
    match close {
        ConnectionClose::Transport { code, reason, .. } => format!("{code} {}", printable(reason)),
        ConnectionClose::Application { code, reason } => {
            format!("application {code:#x} {}", printable(reason))
        }
    }
}

/// Removes control characters: a peer's text must not move the cursor of a terminal.
fn printable(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().filter(|character| !character.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Contents, Kind, Problem};
    use bytes::Bytes;
    use hvq_transport::ranges::Ranges;
    use hvq_transport::stream::StreamId;
    use hvq_transport::wire::frame::Stream;

    fn packet(frames: Vec<Frame>, problem: Option<Problem>) -> Packet {
        Packet {
            at: Duration::from_millis(10_012),
            source: "10.0.0.1:1000".parse().unwrap(),
            destination: "10.0.1.1:443".parse().unwrap(),
            connection: Some(0),
            sender: Some(Role::Client),
            path: Some(PathId(1)),
            kind: Kind::OneRtt,
            header: crate::packet::Header::EMPTY,
            token: Default::default(),
            key_updates: 0,
            number: Some(12),
            bytes: 1200,
            contents: Contents { frames, problem, ..Contents::default() },
        }
    }

    #[test]
    fn a_line_says_when_who_where_and_what() {
        let ranges: Ranges = [1..=3, 5..=5].into_iter().collect();
        let ack = Ack::from_ranges(Some(PathId(0)), &ranges, 0, None, 100).unwrap();
        let stream = Stream { id: StreamId(4), offset: 1000, data: Bytes::from_static(b"abc"), fin: true };
        let line =
            describe(&packet(vec![Frame::Ack(ack), Frame::Stream(stream)], None), Duration::from_secs(10));
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            words,
            "12.000 ms c0 client → path 1 1-RTT #12 1200 B path_ack path 0 5 1-3, stream 4 1000+3 fin"
        );
    }

    #[test]
    fn what_a_peer_wrote_does_not_reach_the_terminal_raw() {
        let reason = Bytes::from_static(b"\x1b[2Jgone\r\n");
        let close = Frame::ConnectionClose(ConnectionClose::Application { code: 256, reason });
        let line = describe(&packet(vec![close], None), Duration::ZERO);
        assert!(line.ends_with("connection_close application 0x100 [2Jgone"), "{line}");
    }

    #[test]
    fn a_frame_of_an_extension_has_its_name() {
        let mut stamped = packet(vec![Frame::Ping], None);
        stamped.contents.extensions = vec![Extension::TimeStamp(1234)];
        assert!(describe(&stamped, Duration::ZERO).ends_with("ping, time_stamp 1234"));
        assert_eq!(json(&stamped)["frames"][1]["frame_type"], "time_stamp");
    }

    #[test]
    fn json_says_the_same_and_names_the_problem() {
        let value = json(&packet(vec![Frame::Ping], Some(Problem::NoSecrets)));
        assert_eq!((&value["path"], &value["from"]), (&1.into(), &"client".into()));
        assert_eq!(value["frames"][0]["frame_type"], "ping");
        assert_eq!(value["problem"], "the key log has no secrets of this connection");
    }
}
