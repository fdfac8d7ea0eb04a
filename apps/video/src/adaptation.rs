//! Rates that follow the channels: what does not fit is not encoded, and what fits again is.

use crate::layers::LAYERS;

/// The share of the channels' capacity that is used: the rest is for retransmissions and for key frames.
const SHARE: f64 = 0.8;
/// From this share of late layers on there is too much of them.
const TOO_LATE: f64 = 0.1;
/// The factors by which rates fall then, and by which they rise while nothing is late.
const FALL: f64 = 0.75;
const RISE: f64 = 1.1;
/// The share of the wanted rate below which a layer is worth nothing: it is not sent at all.
const LEAST: f64 = 0.2;

/// The deliveries of the layers above the base layer since the last step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Delivery {
    /// Layers handed to the transport.
    pub sent: u32,
    /// Layers of these that were taken back because they were late.
    pub late: u32,
}

/// The rates of layers, from what the transport estimates and from what was late.
///
/// The base layer always has the rate that is wanted; the layers above share what is left, the lower one first.
#[derive(Clone, Debug)]
pub struct Adaptation {
    wanted: [u32; LAYERS],
    /// The share of the wanted rate that goes to the layers above the base layer.
    share: f64,
}

impl Adaptation {
    /// Makes an adaptation that starts with the rates in `wanted`, in kbit/s.
    pub fn new(wanted: [u32; LAYERS]) -> Self {
        Self { wanted, share: 1.0 }
    }

    /// Rates in kbit/s for the next second; 0 for a layer that is not worth sending. `capacity` is what the transport
    /// believes that all channels carry, in bit/s, if it knows.
    pub fn step(&mut self, capacity: Option<f64>, delivery: Delivery) -> [u32; LAYERS] {
        let above: f64 = self.wanted[1..].iter().copied().map(f64::from).sum();
        let late = f64::from(delivery.late) / f64::from(delivery.sent.max(1));
        self.share *= if late > TOO_LATE { FALL } else { RISE };
        // While layers arrive in time an estimate that is too low is wrong: nobody fills the channels.
        if let Some(capacity) = capacity.filter(|_| late > 0.0) {
            let room = (capacity * SHARE / 1e3 - f64::from(self.wanted[0])).max(0.0);
            self.share = self.share.min(room / above.max(1.0));
        }
        // Not lower than what lets the middle layer be tried again.
        self.share = self.share.clamp(LEAST / 2.0, 1.0);
        self.rates()
    }

    /// The rates of now.
    pub fn rates(&self) -> [u32; LAYERS] {
        let mut left = self.wanted[1..].iter().copied().map(f64::from).sum::<f64>() * self.share;
        let mut rates = self.wanted;
        for rate in &mut rates[1..] {
            let wanted = f64::from(*rate);
            let given = left.min(wanted);
            let worth = given >= wanted * LEAST;
            *rate = if worth { given as u32 } else { 0 };
            left -= given;
        }
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: [u32; LAYERS] = [400, 4100, 7500];

    fn seconds(adaptation: &mut Adaptation, capacity: Option<f64>, late: u32, count: usize) -> [u32; LAYERS] {
        (0..count).map(|_| adaptation.step(capacity, Delivery { sent: 60, late })).last().unwrap_or(WANTED)
    }

    #[test]
    fn while_nothing_is_late_every_layer_has_what_is_wanted() {
        let mut adaptation = Adaptation::new(WANTED);
        assert_eq!(seconds(&mut adaptation, Some(5e6), 0, 5), WANTED);
        assert_eq!(seconds(&mut adaptation, None, 5, 5), WANTED);
    }

    #[test]
    fn the_highest_layer_goes_first_and_the_base_layer_never() {
        let mut adaptation = Adaptation::new(WANTED);
        let [base, middle, highest] = seconds(&mut adaptation, Some(6e6), 30, 1);
        assert!(base == 400 && middle > 3500 && highest < 1000, "{base} {middle} {highest}");
        let [base, middle, highest] = seconds(&mut adaptation, Some(1e6), 60, 10);
        assert_eq!((base, highest), (400, 0));
        assert!(middle < 1300, "{middle}");
    }

    #[test]
    fn what_fits_again_comes_back() {
        let mut adaptation = Adaptation::new(WANTED);
        seconds(&mut adaptation, Some(0.0), 60, 20);
        assert_eq!(seconds(&mut adaptation, Some(60e6), 0, 30), WANTED);
    }
}
