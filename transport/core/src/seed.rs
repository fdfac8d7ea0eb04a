//! Randomness for those who seldom need some.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A generator that takes the memory of its seed alone while it is not in use: a tenth. The memory does not tell what
/// was drawn before.
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

/// A generator for whoever is busy at times: while it rests it has no memory beyond a seed.
pub struct Randomness {
    /// The seed from which the generator is made again after a rest; not used while `awake` holds one.
    seed: [u8; 32],
    awake: Option<Box<StdRng>>,
}

impl From<StdRng> for Randomness {
    fn from(rng: StdRng) -> Self {
        Self { seed: [0; 32], awake: Some(Box::new(rng)) }
    }
}

impl Randomness {
    /// The generator, which wakes if it rests.
    #[inline]
    pub fn get(&mut self) -> &mut StdRng {
        self.awake.get_or_insert_with(|| Box::new(StdRng::from_seed(self.seed)))
    }

    /// Has it rest. The memory that is kept does not tell what was drawn before.
    pub fn hibernate(&mut self) {
        if let Some(mut rng) = self.awake.take() {
            self.seed = rng.random();
        }
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

    #[test]
    fn numbers_after_a_rest_differ_from_those_before() {
        let mut randomness = Randomness::from(StdRng::from_seed([1; 32]));
        let mut all = Vec::new();
        for _ in 0..4 {
            all.extend([(); 2].map(|()| randomness.get().random::<u64>()));
            randomness.hibernate();
            randomness.hibernate();
        }
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 8);
    }
}
