//! A peer that has the keys, and sends what it likes in 1-RTT packets.

use hvq_emulation::Direction;
use hvq_lab::world::{Fate, Net, Side, identity};
use hvq_scheduler::{PathId, Policy};
use hvq_transport::connection::TransportConfig;
use hvq_transport::crypto::keys::{Cipher, Suite};
use hvq_transport::crypto::protect::SealKey;
use hvq_transport::crypto::session::ClientTls;
use hvq_transport::endpoint::EndpointConfig;
use hvq_transport::wire::{ConnectionId, KeyPhase, ShortHeader, Version};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Larger than all packet numbers of the honest part.
const FIRST_NUMBER: u64 = 1 << 16;
/// The longest payload that fits into a datagram of a wire.
const LONGEST: usize = 1400;
/// The time after which a connection that was closed is gone, and one that was not is idle.
const AFTERMATH: Duration = Duration::from_secs(60);

/// A connection over two wires whose secrets are known.
struct Victim {
    net: Net,
    /// Connection IDs seen on each wire, by direction.
    ids: Rc<RefCell<[[Option<ConnectionId>; 2]; 2]>>,
    secrets: Arc<Mutex<String>>,
}

impl Victim {
    /// Both ends know each other, and both paths are in use.
    fn connected() -> Self {
        let config = || TransportConfig::new(Arc::new(|| Policy::RoundRobin.scheduler()));
        let mut net = Net::new(config(), config(), 1);
        let secrets = Arc::new(Mutex::new(String::new()));
        let log = Arc::clone(&secrets);
        let keylog = move |line: &str| {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.push_str(line);
            log.push('\n');
        };
        let tls = ClientTls::builder().alpn(["hvq"]).verify(identity::trust()).keylog(Box::new(keylog));
        net.client_config.set_tls(tls.build().expect("the stored certificate is one"));
        let wires = [net.wire("rtt=2ms,rate=100mbit"), net.wire("rtt=2ms,rate=100mbit")];
        let ids = Rc::new(RefCell::new([[None; 2]; 2]));
        let seen = Rc::clone(&ids);
        let id_length = EndpointConfig::default().id_length();
        net.tap = Some(Box::new(move |wire, way, bytes| {
            let is_short = bytes.first().is_some_and(|first| first & 0x80 == 0);
            if let Some(id) = bytes.get(1..=id_length).filter(|_| is_short).and_then(ConnectionId::new) {
                seen.borrow_mut()[wire][way_index(way)] = Some(id);
            }
            Fate::Pass
        }));
        net.connect(wires[0]);
        net.run_for(Duration::from_millis(10));
        let now = net.now;
        net.client.connection().open_path(wires[1], now).expect("paths may be opened");
        net.run_for(Duration::from_millis(20));
        net.tap = None;
        Self { net, ids, secrets }
    }

    /// The key of packets that travel in direction `way`.
    fn key(&self, way: Direction) -> SealKey {
        let label = match way {
            Direction::Up => "CLIENT_TRAFFIC_SECRET_0",
            Direction::Down => "SERVER_TRAFFIC_SECRET_0",
        };
        let log = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let line = log.lines().find(|line| line.starts_with(label)).expect("the handshake is complete");
        let secret = line.rsplit(' ').next().expect("a line of a key log has three words");
        let secret: Vec<u8> = (0..secret.len() / 2)
            .map(|index| u8::from_str_radix(&secret[2 * index..2 * index + 2], 16))
            .collect::<Result<_, _>>()
            .expect("a secret is in hexadecimal digits");
        let suite = if secret.len() == 48 { Suite::Aes256Gcm } else { Suite::Aes128Gcm };
        SealKey::new(Cipher { suite, version: Version::V1 }, &secret)
    }
}

fn way_index(way: Direction) -> usize {
    match way {
        Direction::Up => 0,
        Direction::Down => 1,
    }
}

/// The first byte says who is attacked. Pieces follow: the first byte of each says on which path and when, the rest is the
/// payload of a packet.
pub(crate) fn run(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let (way, side) =
        if first % 2 == 0 { (Direction::Up, Side::Server) } else { (Direction::Down, Side::Client) };
    let mut victim = Victim::connected();
    let key = victim.key(way);
    for (number, piece) in (FIRST_NUMBER..).zip(super::pieces(rest).take(64)) {
        let Some((&when, payload)) = piece.split_first() else { continue };
        let wire = usize::from(when % 2);
        let Some(destination) = victim.ids.borrow()[wire][way_index(way)] else { continue };
        let header = ShortHeader { destination, key_phase: KeyPhase::Zero, spin: false };
        let mut packet = Vec::new();
        let layout = header.put(&mut packet, number, 4);
        packet.extend_from_slice(&payload[..payload.len().min(LONGEST)]);
        // Shorter ones have no sample for the header's protection (RFC 9001 §5.4.2).
        packet.resize(packet.len().max(layout.payload_offset() + 4), 0);
        key.seal(&mut packet, 0, &layout, PathId(wire as u32), number);
        let datagram = victim.net.arriving(wire, way, &packet);
        victim.net.inject(side, datagram);
        victim.net.run_for(Duration::from_micros(u64::from(when) * 100));
    }
    victim.net.run_for(AFTERMATH);
    for (side, end) in [("client", &victim.net.client), ("server", &victim.net.server)] {
        assert_eq!(end.endpoint.handles().count(), 0, "the {side} keeps a connection that ended");
    }
}
