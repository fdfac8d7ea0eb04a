//! The emulator's thread: wait, read, hand in; hand out, write.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::steer::Delivered;
use crate::{Admission, Direction};
use bytes::{Bytes, BytesMut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::log::{PacketEnd, PacketLog, Record};
use super::report::{EmulatorCounters, Report};
use super::{Crossing, QueuedPacket, Shared};
use crate::tun::packet::{self, Flows, Header};

/// The thread looks around at least this often.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Packets from one device before the others get their turn and due packets are written.
const MOST_AT_ONCE: usize = 32;
/// No packet is larger: the length of IP has 16 bits.
const LARGEST: usize = 65_535;
/// The priority of the emulator on the scale of nice(2), whose most urgent end it is.
const MOST_URGENT: i32 = -20;

pub(super) struct EmulatorEngine {
    shared: Arc<Shared>,
    wakened: UnixStream,
    crossings: Vec<Crossing>,
    counters: EmulatorCounters,
    log: Option<PacketLog>,
    flows: Flows,
    buffer: Box<[u8]>,
}

impl EmulatorEngine {
    pub(super) fn new(
        shared: Arc<Shared>,
        wakened: UnixStream,
        crossings: Vec<Crossing>,
        log: Option<PacketLog>,
    ) -> Self {
        let buffer = vec![0; LARGEST].into_boxed_slice();
        let (counters, flows) = (EmulatorCounters::default(), Flows::default());
        Self { shared, wakened, crossings, counters, log, flows, buffer }
    }

    /// Carries packets until it is told to stop; returns what it did.
    pub(super) fn run(mut self) -> Report {
        sharpen_timers();
        go_first();
        while !self.shared.stopping.load(Ordering::Acquire) {
            let deadline = self.hand_out();
            let ready = self.wait(deadline);
            if ready.is_empty() {
                let _woken = self.wakened.read(&mut [0; 16]);
            }
            for (index, direction) in ready {
                self.receive(index, direction);
            }
        }
        Report::new(self.now(), &self.crossings, &self.counters)
    }

    fn now(&self) -> Duration {
        self.shared.start.elapsed()
    }

    /// Writes everything that has left the channels; returns when the next packet leaves.
    fn hand_out(&mut self) -> Option<Duration> {
        let Self { crossings, counters, log, shared, .. } = self;
        let now = shared.start.elapsed();
        for crossing in crossings.iter_mut() {
            while let Some(delivered) = crossing.network.deliver(now) {
                let sent = write(crossing, &delivered);
                let lateness = shared.start.elapsed().saturating_sub(delivered.departure.at);
                counters.lateness.record(lateness);
                if let Err(error) = sent {
                    tracing::debug!(%error, "a packet could not be handed over");
                    counters.unsent.add(delivered.departure.size);
                }
                if let Some(log) = log {
                    let departure = &delivered.departure;
                    let delay = departure.at - departure.entered;
                    log.record(Record {
                        at: departure.at,
                        direction: delivered.direction,
                        channel: crossing.network.name(delivered.branch),
                        size: departure.size,
                        header: departure.packet.header,
                        end: PacketEnd::Left { delay, held: delivered.held, lateness },
                    });
                    counters.unlogged = log.unlogged();
                }
            }
        }
        crossings.iter().filter_map(|crossing| crossing.network.next_deadline()).min()
    }

    /// Waits until `deadline` or until some device has something; returns those that have.
    fn wait(&self, deadline: Option<Duration>) -> Vec<(usize, Direction)> {
        let left = deadline.map_or(LONGEST_WAIT, |at| at.saturating_sub(self.now()).min(LONGEST_WAIT));
        let timeout = Timespec {
            tv_sec: left.as_secs().try_into().expect("at most a second"),
            tv_nsec: left.subsec_nanos().into(),
        };
        let both = [Direction::Up, Direction::Down];
        let names = (0..self.crossings.len()).flat_map(|index| both.map(|direction| (index, direction)));
        let mut waiting = vec![PollFd::new(&self.wakened, PollFlags::IN)];
        for crossing in &self.crossings {
            waiting.extend(both.map(|direction| PollFd::new(crossing.source(direction), PollFlags::IN)));
        }
        if let Err(error) = poll(&mut waiting, Some(&timeout)) {
            // An interrupted wait is one that ended early.
            tracing::trace!(%error, "the wait ended early");
            return Vec::new();
        }
        let ready = names.zip(waiting.iter().skip(1)).filter(|(_, waiting)| !waiting.revents().is_empty());
        ready.map(|(name, _)| name).collect()
    }

    /// Reads a bounded number of packets from a device and hands them to the channels.
    fn receive(&mut self, index: usize, direction: Direction) {
        let Some(crossing) = self.crossings.get_mut(index) else { return };
        for _ in 0..MOST_AT_ONCE {
            let size = match crossing.source(direction).receive(&mut self.buffer) {
                Ok(size) => size,
                Err(error) => {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        tracing::debug!(%error, "nothing was read");
                    }
                    return;
                }
            };
            let bytes = Bytes::copy_from_slice(self.buffer.get(..size).unwrap_or_default());
            let header = Header::read(&bytes);
            let now = self.shared.start.elapsed();
            let verdict =
                crossing.network.enqueue(direction, now, &self.flows, QueuedPacket { bytes, header });
            if let (Admission::Dropped(reason), Some(log)) = (verdict, &mut self.log) {
                log.record(Record {
                    at: now,
                    direction,
                    channel: crossing.network.last_name(direction),
                    size,
                    header,
                    end: PacketEnd::Dropped(reason),
                });
            }
        }
    }
}

/// Writes one packet, with the mark of congestion if its queue asks for it.
fn write(crossing: &Crossing, delivered: &Delivered<QueuedPacket>) -> io::Result<()> {
    let target = crossing.target(delivered.direction);
    let bytes = &delivered.departure.packet.bytes;
    if delivered.departure.congested {
        let mut marked = BytesMut::from(bytes.as_ref());
        packet::mark_congestion(&mut marked);
        return target.send(&marked);
    }
    target.send(bytes)
}

/// Lets this thread run before others that are ready, where that is permitted: what it does is short, and being late is the
/// one error that it has.
fn go_first() {
    if let Err(error) = rustix::process::nice(MOST_URGENT) {
        tracing::debug!(%error, "the emulator runs like any other thread");
    }
}

/// Asks the kernel not to lump this thread's timers together; it would by 50 µs.
fn sharpen_timers() {
    if let Err(error) = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)) {
        tracing::debug!(%error, "timers stay as coarse as they are");
    }
}
