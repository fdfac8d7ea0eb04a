//! The player of arrivals: the receiver's model with the bytes of layers, on the way to the decoder.

use super::arrivals::Arrived;
use super::display::Pending;
use super::figures::Figures;
use crate::layers::HELD;
use crate::playout::Playout;
use crate::session::time_of_day;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc;

/// Keeps layers until their frames are due.
pub(super) struct Player {
    playout: Playout,
    layers: BTreeMap<(u32, usize), Vec<u8>>,
    /// The gain from the layers above the base layer, as the decoder sees it.
    learning: mpsc::UnboundedReceiver<f64>,
    pub(super) figures: Figures,
}

impl Player {
    pub(super) fn new(playout: Playout, learning: mpsc::UnboundedReceiver<f64>) -> Self {
        Self { playout, layers: BTreeMap::new(), learning, figures: Figures::default() }
    }

    pub(super) fn on_layer(&mut self, (at, header, data): Arrived) {
        self.figures.on_layer(&header, at);
        if self.playout.on_layer(&header, at) {
            self.layers.insert((header.frame, header.layer), data);
        }
    }

    /// Returns the time until the next frame is due, as far as is known.
    pub(super) fn until(&self) -> Option<Duration> {
        self.playout.deadline().map(|at| at.saturating_sub(time_of_day()))
    }

    /// Hands what is due to the decoder.
    pub(super) fn play_due(&mut self, pending: &mpsc::Sender<Pending>) {
        while let Ok(better) = self.learning.try_recv() {
            self.playout.learn(better);
        }
        while let Some(decoded) = self.playout.poll(time_of_day()) {
            let data =
                decoded.order.iter().map(|layer| self.layers.remove(layer).unwrap_or_default()).collect();
            // Later frames may refer to what comes late of this one.
            self.layers = self.layers.split_off(&(decoded.frame.saturating_sub(HELD[0] - 1), 0));
            self.figures.on_decoded(&decoded);
            if decoded.depth > 0 && pending.try_send((decoded, data)).is_err() {
                self.figures.overrun += 1;
            }
        }
    }
}
