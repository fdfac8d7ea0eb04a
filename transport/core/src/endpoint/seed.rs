//! Randomness for those who seldom need some.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A generator that takes the memory of its seed alone while it is not in use: a tenth. What was drawn cannot be found out
/// from what is kept.
pub struct Seed([u8; 32]);

impl Seed {
    /// A seed drawn from `rng`.
    pub fn from_rng(rng: &mut StdRng) -> Self {
        Self(rng.random())
    }

    /// Lets `draw` use a generator, and goes on from where it ends.
    pub fn draw<T>(&mut self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        let mut rng = StdRng::from_seed(self.0);
        let drawn = draw(&mut rng);
        self.0 = rng.random();
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_differ_and_follow_from_the_seed() {
        let series = |from: u8| {
            let mut seed = Seed::from_rng(&mut StdRng::from_seed([from; 32]));
            [(); 4].map(|()| seed.draw(|rng| rng.random::<u64>()))
        };
        let mut all = [series(1), series(2)].concat();
        assert_eq!(series(1), series(1));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 8);
    }
}
