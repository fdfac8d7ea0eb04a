//! From the difference of two utilities to a change of the rate (§4.2 of the paper).

/// Mbit/s by which a gradient of 1 changes the rate (θ₀; §4.2).
const CONVERSION: f64 = 1.0;
/// The share of the rate that a step may be at first, and by how much more each step at the limit widens it (ω₀, δ; §4.2).
const BOUNDARY: f64 = 0.05;
const WIDENING: f64 = 0.1;
/// More steps in one direction than this widen nothing further.
const MOST_STEPS: f64 = 1000.0;

/// The confidence amplifier and the dynamic change boundary.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateStep {
    /// The sign of the last change.
    direction: f64,
    /// Changes in that direction in a row (τ).
    steps: f64,
    /// The number of times that the boundary was widened (k).
    widened: f64,
}

impl RateStep {
    /// The change of `rate`, in Mbit/s, after trials `trial` of it above and below showed this `difference` of utility.
    pub(super) fn change(&mut self, rate: f64, difference: f64, trial: f64) -> f64 {
        let gradient = difference / (2.0 * trial * rate.max(1e-6));
        let direction = if gradient < 0.0 { -1.0 } else { 1.0 };
        if direction == self.direction {
            self.steps = (self.steps + 1.0).min(MOST_STEPS);
        } else {
            *self = Self { direction, steps: 1.0, widened: 0.0 };
        }
        // m(τ): τ up to three, then twice as steep.
        let amplifier = if self.steps <= 3.0 { self.steps } else { 2.0 * self.steps - 3.0 };
        let change = (amplifier * CONVERSION * gradient).abs();
        let boundary = BOUNDARY + self.widened * WIDENING;
        if change > boundary * rate {
            self.widened = (self.widened + 1.0).min(MOST_STEPS);
            return direction * boundary * rate;
        }
        // The narrowest boundary that lets this change pass.
        self.widened = ((change / rate.max(1e-6) - BOUNDARY) / WIDENING).ceil().max(0.0).min(self.widened);
        direction * change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_grows_while_the_direction_stays() {
        let mut step = RateStep::default();
        // A gradient of 0.1 at 100 Mbit/s.
        let changes: Vec<_> = (0..5).map(|_| (step.change(100.0, 1.0, 0.05) * 10.0).round()).collect();
        assert_eq!(changes, [1.0, 2.0, 3.0, 5.0, 7.0]);
        assert_eq!((step.change(100.0, -1.0, 0.05) * 10.0).round(), -1.0, "and begins anew with the other");
    }

    #[test]
    fn a_step_stays_within_a_boundary_that_widens() {
        let mut step = RateStep::default();
        let changes: Vec<_> = (0..3).map(|_| step.change(100.0, -1e6, 0.05).round()).collect();
        assert_eq!(changes, [-5.0, -15.0, -25.0]);
        assert_eq!(step.change(100.0, 1e6, 0.05).round(), 5.0);
    }
}
