//! Fuzz targets: each takes any bytes, and panics if what they are fed to breaks a promise.
//!
//! `make fuzz` drives them with libFuzzer; `cargo test` replays the corpus and variations of it.

mod authenticated_peer;
mod capture;
mod off_path_attacker;
mod qpack;
mod requests;
mod text;
mod web_transport;
mod wire;

/// Something that reads what others wrote.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name, also of the folder of its corpus.
    pub name: &'static str,
    /// A description of the code under test, and of the properties that must hold.
    pub what: &'static str,
    /// Runs it once. Panics if a promise is broken.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: [Target; 10] = [
    Target {
        name: "packets",
        what: "a datagram is taken apart into packets, which together are no longer than it",
        run: wire::packets,
    },
    Target {
        name: "frames",
        what: "the payload of a packet: frames that were read are written and read again as the same",
        run: wire::frames,
    },
    Target {
        name: "parameters",
        what: "transport parameters, version information, a ClientHello",
        run: wire::parameters,
    },
    Target {
        name: "off_path_attacker",
        what: "datagrams and Initial packets of somebody unknown, at a server: it answers with three times as much at most",
        run: off_path_attacker::run,
    },
    Target {
        name: "authenticated_peer",
        what: "1-RTT packets of an authenticated peer, at either end: it goes on, or it closes and is gone",
        run: authenticated_peer::run,
    },
    Target {
        name: "text",
        what: "options, channels, traces, pages, experiments, names, priorities",
        run: text::run,
    },
    Target {
        name: "requests",
        what: "the field section of an HTTP/3 request: it is no larger than the limit, or refused",
        run: requests::run,
    },
    Target {
        name: "qpack",
        what: "instructions and field sections with dynamic tables: they are followed within the capacity, or refused",
        run: qpack::run,
    },
    Target {
        name: "web_transport",
        what: "capsules of WebTransport sessions and heads of their streams: those that were read are written and read again as the same",
        run: web_transport::run,
    },
    Target { name: "capture", what: "a pcap or pcapng file, decoded with a key log", run: capture::run },
];

/// The target `name`, if there is one.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}

/// The pieces of `bytes`: each is preceded by its length in two bytes, the last ends where the bytes do.
fn pieces(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk()?;
        let (piece, rest) = rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
        bytes = rest;
        Some(piece)
    })
}
