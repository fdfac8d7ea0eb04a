//! Loss: independent, and in bursts.

use rand::rngs::StdRng;

use crate::link::DropReason;
use crate::quantity::Probability;

/// Bursty loss as Gilbert and Elliott modelled it: a good state without loss and a bad one, stepped once a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Chance to go from the good state to the bad one, per packet.
    pub enter: Probability,
    /// Chance to go back, per packet; the mean burst lasts `1 / leave` packets.
    pub leave: Probability,
    /// Loss in the bad state.
    pub loss: Probability,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weather {
    Good,
    Bad,
}

/// The dice of a link's losses.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    random: Probability,
    burst: Option<Burst>,
    weather: Weather,
    chance: StdRng,
}

impl Loss {
    pub(crate) fn new(random: Probability, burst: Option<Burst>, chance: StdRng) -> Self {
        Self { random, burst, weather: Weather::Good, chance }
    }

    /// Does the next packet get lost, and to what?
    pub(crate) fn strikes(&mut self) -> Option<DropReason> {
        if self.random.happens(&mut self.chance) {
            return Some(DropReason::Random);
        }
        let burst = self.burst?;
        let change = match self.weather {
            Weather::Good => burst.enter,
            Weather::Bad => burst.leave,
        };
        if change.happens(&mut self.chance) {
            self.weather = match self.weather {
                Weather::Good => Weather::Bad,
                Weather::Bad => Weather::Good,
            };
        }
        (self.weather == Weather::Bad && burst.loss.happens(&mut self.chance)).then_some(DropReason::Burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn share(value: f64) -> Probability {
        Probability::new(value).unwrap()
    }

    #[test]
    fn random_loss_has_the_share_asked_for() {
        let mut loss = Loss::new(share(0.01), None, StdRng::seed_from_u64(1));
        let lost = (0..100_000).filter(|_| loss.strikes() == Some(DropReason::Random)).count();
        assert!((900..1100).contains(&lost), "{lost}");
    }

    #[test]
    fn bursty_loss_has_the_stationary_share_and_the_mean_length_of_its_model() {
        let burst = Burst { enter: share(0.01), leave: share(0.25), loss: Probability::ALWAYS };
        let mut loss = Loss::new(Probability::NEVER, Some(burst), StdRng::seed_from_u64(2));
        let fates: Vec<bool> = (0..200_000).map(|_| loss.strikes().is_some()).collect();
        let lost = fates.iter().filter(|lost| **lost).count() as f64;
        let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        // Stationary share of the bad state: enter / (enter + leave) = 3.85 %; mean burst 1 / leave = 4 packets.
        assert!((0.034..0.043).contains(&(lost / 200_000.0)), "{lost}");
        assert!((3.7..4.3).contains(&(lost / bursts)), "{}", lost / bursts);
    }
}
