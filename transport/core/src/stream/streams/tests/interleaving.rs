//! Random networks and applications: content arrives byte for byte, and flow control adds up (attacks E13).

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A frame under way from the client (0) or the server (1).
#[derive(Clone, Debug)]
struct Flight {
    from: usize,
    path: PathId,
    frame: Frame,
    token: RecoveryToken,
}

/// Two endpoints, what is between them, and what each application wrote and read.
struct World {
    ends: [Streams; 2],
    flights: Vec<Flight>,
    /// Frames that arrived, of which a copy may arrive again.
    arrived: Vec<Flight>,
    written: BTreeMap<(usize, StreamId), Vec<u8>>,
    read: BTreeMap<(usize, StreamId), Vec<u8>>,
    /// Streams whose end or reset was read, and streams that were reset or stopped by either side.
    ended: Vec<(usize, StreamId)>,
    aborted: Vec<StreamId>,
    /// Bytes that come whatever happens on streams that were reset, unless the reader wants none.
    promised: BTreeMap<(usize, StreamId), u64>,
    clock: u64,
}

/// One step: what to do, and two numbers that say with what.
type Step = (u8, usize, usize);

impl World {
    fn new() -> Self {
        let (client, server) = pair(limits());
        Self {
            ends: [client, server],
            flights: Vec::new(),
            arrived: Vec::new(),
            written: BTreeMap::new(),
            read: BTreeMap::new(),
            ended: Vec::new(),
            aborted: Vec::new(),
            promised: BTreeMap::new(),
            clock: 0,
        }
    }

    fn step(&mut self, (action, a, b): Step) {
        self.clock += b as u64 % 40;
        let end = a % 2;
        let ids: Vec<StreamId> = self.written.keys().filter(|(e, _)| *e == end).map(|(_, id)| *id).collect();
        let pick = |ids: &[StreamId]| ids.get(b % ids.len().max(1)).copied();
        match action {
            0 => self.open(end, b),
            1..=4 => self.write(end, pick(&ids), a),
            5 => self.finish(end, pick(&ids), b),
            6..=9 => self.send(end, a),
            10..=14 => self.arrive(b),
            15 => self.lose(b),
            16 => self.fall_silent(b),
            17 => self.duplicate(b),
            18 => self.arrive_late(b),
            19 if b % 8 == 0 => self.abort(end, pick(&ids), a),
            _ => self.read_some(end, 1 + a),
        }
    }

    fn open(&mut self, end: usize, b: usize) {
        let direction = if b.is_multiple_of(2) { BIDI } else { UNI };
        if let Some(id) = self.ends[end].open(direction) {
            self.written.insert((end, id), Vec::new());
            if direction == BIDI {
                self.read.insert((end, id), Vec::new());
            }
            let priority = Priority { urgency: (b % 8) as u8, incremental: b.is_multiple_of(3) };
            self.ends[end].set_priority(id, priority);
        }
    }

    fn write(&mut self, end: usize, id: Option<StreamId>, a: usize) {
        let Some(id) = id else { return };
        let log = self.written.get_mut(&(end, id)).expect("a stream of this end");
        let data: Vec<u8> = (0..a % 300).map(|i| ((log.len() + i) as u64 * 7 + id.0) as u8).collect();
        if let Ok(length) = self.ends[end].write(id, &data) {
            log.extend_from_slice(&data[..length]);
        }
        if a.is_multiple_of(5) {
            // Refused for streams that are finished or reset, which is fine.
            let _ = self.ends[end].end_message(id, None);
        }
    }

    fn finish(&mut self, end: usize, id: Option<StreamId>, b: usize) {
        if let Some(id) = id.filter(|_| b.is_multiple_of(3)) {
            let _ = self.ends[end].finish(id);
        }
    }

    fn abort(&mut self, end: usize, id: Option<StreamId>, a: usize) {
        let Some(id) = id else { return };
        if a.is_multiple_of(3) {
            let _ = self.ends[end].stop(id, 1);
            self.promised.insert((1 - end, id), 0);
        } else {
            let wanted = if a.is_multiple_of(4) { 0 } else { a as u64 };
            if let Ok(reliable_size) = self.ends[end].reset(id, 2, wanted) {
                let promised = self.promised.entry((end, id)).or_insert(reliable_size);
                *promised = reliable_size.min(*promised);
            }
        }
        self.aborted.push(id);
    }

    fn send(&mut self, from: usize, a: usize) {
        let path = PathId((a % 3 % 2) as u32);
        let now = at(self.clock);
        let sent = self.ends[from].next_control(now).or_else(|| {
            let key = self.ends[from].next_sendable(None)?;
            let offer = self.ends[from].offer(key.id, now).expect("it is sendable");
            let (frame, token) = taken(&mut self.ends[from], key.id, 20 + a % 200, usize::MAX)?;
            let Frame::Stream(stream) = &frame else { panic!("not data") };
            assert_eq!(stream.offset, offer.offset);
            assert!(stream.data.len() <= offer.bytes && (!stream.fin || offer.fin));
            Some((frame, token))
        });
        if let Some((frame, token)) = sent {
            self.flights.push(Flight { from, path, frame, token });
        }
    }

    fn arrive(&mut self, b: usize) {
        if !self.flights.is_empty() {
            let flight = self.flights.remove(b % self.flights.len());
            deliver(&mut self.ends[1 - flight.from], flight.frame.clone());
            self.ends[flight.from].on_acknowledged(&flight.token);
            self.accept_all();
            self.arrived.push(flight);
        }
    }

    fn lose(&mut self, b: usize) {
        if !self.flights.is_empty() {
            let flight = self.flights.remove(b % self.flights.len());
            self.ends[flight.from].on_lost(&flight.token, flight.path);
        }
    }

    fn fall_silent(&mut self, b: usize) {
        if !self.flights.is_empty() {
            let flight = &self.flights[b % self.flights.len()];
            self.ends[flight.from].on_silent(&flight.token, flight.path, Duration::from_millis(50));
        }
    }

    fn duplicate(&mut self, b: usize) {
        if !self.arrived.is_empty() {
            let flight = self.arrived[b % self.arrived.len()].clone();
            deliver(&mut self.ends[1 - flight.from], flight.frame);
        }
    }

    /// A packet counts as lost and arrives after all, and is acknowledged then.
    fn arrive_late(&mut self, b: usize) {
        if !self.flights.is_empty() {
            let flight = self.flights.remove(b % self.flights.len());
            self.ends[flight.from].on_lost(&flight.token, flight.path);
            self.send(flight.from, b);
            deliver(&mut self.ends[1 - flight.from], flight.frame);
            self.ends[flight.from].on_acknowledged(&flight.token);
            self.accept_all();
        }
    }

    fn accept_all(&mut self) {
        for (end, streams) in self.ends.iter_mut().enumerate() {
            for direction in Direction::ALL {
                while let Some(id) = streams.accept(direction) {
                    self.read.insert((end, id), Vec::new());
                    if direction == BIDI {
                        self.written.insert((end, id), Vec::new());
                    }
                }
            }
        }
    }

    fn read_some(&mut self, end: usize, max: usize) {
        for (&(at, id), log) in &mut self.read {
            if at != end || self.ended.contains(&(end, id)) {
                continue;
            }
            match self.ends[end].read(id, max) {
                Ok(ReadOutcome::Data(data)) => log.extend_from_slice(&data),
                Ok(ReadOutcome::Blocked) => {}
                Ok(ReadOutcome::Finished) | Err(_) => self.ended.push((end, id)),
            }
        }
    }

    /// Credit is conserved: nobody sent more than permitted, and what arrived is what is read, dropped or held.
    fn check(&self) {
        for end in 0..2 {
            let (here, there) = (&self.ends[end], &self.ends[1 - end]);
            assert!(here.window.received() <= there.credit.used(), "received more than was sent");
            assert!(there.credit.used() <= here.window.limit(), "sent more than was permitted");
            assert!(here.window.consumed() <= here.window.received());
            let held: u64 = here
                .map
                .iter()
                .filter_map(|(_, stream)| stream.receive.as_ref())
                .map(|receive| receive.window().received() - receive.window().consumed())
                .sum();
            assert_eq!(here.window.received() - here.window.consumed(), held, "credit was lost");
            here.audit().expect("the books agree with the streams");
        }
        for ((end, id), log) in &self.read {
            let written = self.written.get(&(1 - end, *id)).map_or(&[][..], |log| &log[..]);
            assert!(written.starts_with(log), "stream {id}: what is read is not what was written");
        }
    }

    /// A perfect network, until nobody has anything to say.
    fn settle(&mut self) {
        for flight in std::mem::take(&mut self.flights) {
            self.ends[flight.from].on_lost(&flight.token, flight.path);
        }
        let all: Vec<_> = self.written.keys().copied().collect();
        for (end, id) in all {
            let _ = self.ends[end].finish(id);
        }
        for _ in 0..500 {
            self.clock += 10;
            for end in 0..2 {
                while self.ends[end].has_sendable() || self.ends[end].has_control() {
                    self.send(end, 199);
                    while !self.flights.is_empty() {
                        self.arrive(0);
                    }
                }
                self.read_some(end, 1000);
            }
            let accepted: Vec<_> = self.written.keys().copied().collect();
            for (end, id) in accepted {
                let _ = self.ends[end].finish(id);
            }
        }
    }

    /// All that was not aborted is there, and nothing is left.
    fn check_end(&self) {
        for ((end, id), log) in &self.read {
            if !self.aborted.contains(id) {
                assert_eq!(Some(log), self.written.get(&(1 - end, *id)), "stream {id} is incomplete");
                assert!(self.ended.contains(&(*end, *id)), "stream {id} has no end");
            }
        }
        for end in 0..2 {
            let (here, there) = (&self.ends[end], &self.ends[1 - end]);
            assert_eq!(here.window.received(), there.credit.used());
            assert_eq!(here.window.consumed(), here.window.received());
            for ((end, id), promised) in &self.promised {
                let read = self.read.get(&(1 - end, *id)).map_or(0, |log| log.len() as u64);
                assert!(read >= *promised, "stream {id}: {read} of {promised} bytes that were promised");
            }
            assert!(here.is_empty(), "{} streams are left", here.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_the_network_does_content_and_credit_come_out_right(
        steps in proptest::collection::vec((0u8..26, 0usize..1000, 0usize..1000), 0..600),
    ) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
            world.check();
        }
        world.settle();
        world.check();
        world.check_end();
    }
}
