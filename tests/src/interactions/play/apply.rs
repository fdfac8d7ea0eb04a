//! Does what an operation says.
use super::Stage;
use crate::interactions::draw::Op;
use crate::interactions::player::after;
use hvq_lab::world::Side;
use hvq_scheduler::{Bandwidth, Hints, PathId, Priority, Sharing};
use hvq_transport::connection::Connection;
use std::time::Duration;

fn side(number: u8) -> Side {
    Side::BOTH[usize::from(number) % 2]
}

fn milliseconds(count: u16) -> Duration {
    Duration::from_millis(u64::from(count))
}

impl Stage {
    /// Does `op`; what is refused is refused, nothing else.
    pub(super) fn apply(&mut self, op: &Op) {
        match *op {
            Op::Open { .. }
            | Op::Write { .. }
            | Op::EndMessage { .. }
            | Op::Finish { .. }
            | Op::Reset { .. }
            | Op::Stop { .. }
            | Op::Read { .. }
            | Op::Priority { .. }
            | Op::Datagram { .. } => self.apply_to_streams(op),
            // RFC 9000 §9: nothing holds a handshake together if its address changes.
            Op::RebindPort { .. } | Op::RebindAddress { .. } | Op::Forge { .. } if !self.is_confirmed() => {}
            Op::RebindPort { wire, port } => self.fixture.rebind_port(wire, port),
            Op::RebindAddress { wire, host } => self.fixture.rebind_address(wire, host),
            Op::Cut { wire, milliseconds: time } => self.fixture.cut(wire, milliseconds(time)),
            Op::Change { wire, seed } => self.fixture.change(wire, seed),
            Op::CutWay { wire, way, milliseconds: time } => {
                self.fixture.cut_way(wire, way, milliseconds(time))
            }
            Op::Darken { first, way, milliseconds: time, later } => {
                self.fixture.darken(first, way, [time, later].map(milliseconds));
            }
            Op::Flap { wire, milliseconds: period, dark } => {
                let period = milliseconds(period);
                self.fixture.flap(wire, period, period * u32::from(dark) / 100);
            }
            Op::Lose { wire, way, count } => self.fixture.lose(wire, way, count),
            Op::Forge { wire, host, count } => self.fixture.forge(wire, host, count),
            Op::Wait { .. } | Op::AwaitHandshake => {}
            Op::Close { side: by, code } => self.apply_close(side(by), code),
            _ => self.apply_to_paths(op),
        }
    }

    fn apply_close(&mut self, by: Side, code: u8) {
        let now = self.fixture.net.now;
        if let Some(connection) = self.fixture.connection(by) {
            connection.close(u64::from(code), b"enough", now);
            self.closing = true;
        }
    }

    fn apply_to_streams(&mut self, op: &Op) {
        let (Op::Open { side: by, .. }
        | Op::Write { side: by, .. }
        | Op::EndMessage { side: by, .. }
        | Op::Finish { side: by, .. }
        | Op::Reset { side: by, .. }
        | Op::Stop { side: by, .. }
        | Op::Read { side: by, .. }
        | Op::Priority { side: by, .. }
        | Op::Datagram { side: by, .. }) = *op
        else {
            return;
        };
        let (by, now, player) = (side(by), self.fixture.net.now, &mut self.player);
        let Some(connection) = self.fixture.connection(by) else { return };
        match *op {
            Op::Open { direction, bytes, .. } => player.open(by, direction, u64::from(bytes), connection),
            Op::Datagram { bytes, milliseconds, .. } => {
                player.send_datagram(by, usize::from(bytes), after(now, milliseconds), connection);
            }
            Op::Stop { stream, code, .. } => {
                if let Some(id) = player.receiving(by, stream) {
                    player.stop(by, id, u64::from(code), connection);
                }
            }
            Op::Read { stream, bytes, .. } => {
                if let Some(id) = player.receiving(by, stream) {
                    player.read(by, id, bytes as usize, connection);
                }
            }
            Op::Write { stream, .. }
            | Op::EndMessage { stream, .. }
            | Op::Finish { stream, .. }
            | Op::Reset { stream, .. }
            | Op::Priority { stream, .. } => {
                let Some(id) = player.sending(by, stream) else { return };
                match *op {
                    Op::Write { bytes, .. } => player.write(by, id, u64::from(bytes), connection),
                    Op::Finish { .. } => player.finish(by, id, connection),
                    Op::Reset { code, .. } => player.reset(by, id, u64::from(code), connection),
                    Op::Priority { urgency, .. } => {
                        connection.set_priority(id, Priority { urgency, incremental: urgency % 2 == 0 });
                    }
                    _ => connection.end_message(id, None).unwrap_or_default(),
                }
            }
            _ => {}
        }
    }

    fn apply_to_paths(&mut self, op: &Op) {
        let now = self.fixture.net.now;
        match *op {
            Op::OpenPath { wire } => {
                let tuple = self.fixture.tuple(wire);
                self.on(Side::Client, 0, |it, _| it.open_path(tuple, now));
            }
            Op::Migrate { path, wire, moving } => {
                let tuple = self.fixture.tuple(wire);
                self.on(Side::Client, path, |it, path| it.migrate(path, tuple, moving, now));
            }
            Op::Abandon { side: by, path } => {
                self.on(side(by), path, |it, path| it.abandon_path(path, 0x3e, now));
            }
            Op::Advise { side: by, path, status } => {
                self.on(side(by), path, |it, path| it.set_path_status(path, status));
            }
            Op::Hint { side: by, path, megabits, milliseconds: delay } => {
                let hints = hints(megabits, delay);
                self.on(side(by), path, |it, path| it.set_hints(path, hints));
            }
            Op::Control { side: by, path, algorithm } => {
                self.on(side(by), path, |it, path| it.set_congestion(path, algorithm));
            }
            Op::Rotate { side: by, path } => {
                self.on(side(by), path, |it, path| it.rotate_connection_id(path, now));
            }
            Op::KeepWarm { side: by, path, milliseconds: period } => {
                let period = (period > 0).then(|| milliseconds(period));
                self.on(side(by), path, |it, path| it.set_path_keep_alive(path, period));
            }
            Op::UpdateKeys { side: by } => self.on(side(by), 0, |it, _| it.update_keys(now)),
            _ => {}
        }
    }

    /// Does something to a path of `side`.
    fn on<R>(&mut self, side: Side, path: u8, act: impl FnOnce(&mut Connection, PathId) -> R) {
        let path = self.fixture.path(side, path);
        if let Some(connection) = self.fixture.connection(side) {
            let _what_is_refused_is_refused = act(connection, path);
        }
    }
}

fn hints(megabits: u8, milliseconds: u8) -> Hints {
    Hints {
        rate: (megabits > 0).then(|| Bandwidth::from_mbit(u64::from(megabits))),
        delay: (milliseconds > 0).then(|| Duration::from_millis(u64::from(milliseconds))),
        shared: [Sharing::Unknown, Sharing::Shared, Sharing::Dedicated][usize::from(megabits) % 3],
        ..Hints::NONE
    }
}
