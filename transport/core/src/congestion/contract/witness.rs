//! A controller under watch: each answer is held against the clauses that hold at every event.

use crate::Bandwidth;
use crate::congestion::{
    Controller, Flow, LossSample, LostPacket, MarkSample, Persistence, Sample, Sending, SpuriousSample,
    minimum_window,
};

/// A window beyond this is no window: sums with it could overflow.
const MOST: usize = usize::MAX / 2;

/// Passes everything on, and panics with the clause that the controller breaks.
#[derive(Debug)]
pub(super) struct Witness {
    controller: Box<dyn Controller>,
    datagram_size: usize,
}

impl Witness {
    pub(super) fn new(controller: Box<dyn Controller>, datagram_size: usize) -> Self {
        Self { controller, datagram_size }
    }

    /// Panics unless window and rate are such that a sender can go on.
    fn check(&self) {
        let (name, window) = (self.controller.name(), self.controller.window());
        let least = minimum_window(self.datagram_size);
        assert!(window >= least, "{name} has a window of {window} bytes, below two datagrams of {least}");
        assert!(window <= MOST, "{name} has a window of {window} bytes");
        let rate = self.controller.pacing_rate();
        assert!(rate != Some(Bandwidth::default()), "{name} paces at nothing, so that nothing is ever sent");
    }

    /// Tells the controller of congestion, which must not enlarge the window.
    fn congested(&mut self, tell: impl FnOnce(&mut dyn Controller)) {
        let before = self.controller.window();
        tell(&mut *self.controller);
        let (name, after) = (self.controller.name(), self.controller.window());
        assert!(after <= before, "{name} has a window of {after} bytes after congestion, {before} before");
        self.check();
    }
}

impl Controller for Witness {
    fn on_sent(&mut self, sending: &Sending) {
        self.controller.on_sent(sending);
        self.check();
    }

    fn on_acknowledged(&mut self, sample: &Sample) {
        self.controller.on_acknowledged(sample);
        self.check();
    }

    fn on_packet_lost(&mut self, packet: &LostPacket) {
        self.congested(|controller| controller.on_packet_lost(packet));
    }

    fn on_lost(&mut self, sample: &LossSample) {
        self.congested(|controller| controller.on_lost(sample));
        if sample.persistent == Persistence::Persistent {
            let (name, window) = (self.controller.name(), self.controller.window());
            let least = minimum_window(self.datagram_size);
            assert_eq!(
                window, least,
                "{name} has another window than two datagrams in persistent congestion"
            );
        }
    }

    fn on_ecn_ce(&mut self, sample: &MarkSample) {
        self.congested(|controller| controller.on_ecn_ce(sample));
    }

    fn on_spurious(&mut self, sample: &SpuriousSample) {
        self.controller.on_spurious(sample);
        self.check();
    }

    fn flow(&self) -> Option<Flow> {
        self.controller.flow()
    }

    fn on_siblings(&mut self, flows: &[Flow]) {
        self.controller.on_siblings(flows);
    }

    fn window(&self) -> usize {
        self.controller.window()
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        self.controller.pacing_rate()
    }

    fn withholds(&self) -> bool {
        self.controller.withholds()
    }

    fn name(&self) -> &'static str {
        self.controller.name()
    }

    fn in_slow_start(&self) -> bool {
        self.controller.in_slow_start()
    }

    fn set_datagram_size(&mut self, datagram_size: usize) {
        self.datagram_size = datagram_size;
        self.controller.set_datagram_size(datagram_size);
        self.check();
    }
}
