//! Base layers of even size: the quantizer of each is found by a second encoder, of that layer alone, which tries some.
//!
//! A rate control that learns from the pictures before this one is wrong where the content changes, and then the base layer
//! is late: nothing can be sent in its place. The layers above are not encoded twice, since their places for pictures are
//! used up by the first attempt ([`crate::layers::HELD`]).

use crate::picture::Picture;
use crate::vpx::encoder::{EncodeError, Settings};
use crate::vpx::library::{Kind, Library};

/// The lowest quantizer: what the base layer would spend on quiet pictures is missing when they move again, and the layers
/// above have the detail.
pub(crate) const LEAST: u32 = 20;
/// The highest that VP9 has.
pub(crate) const MOST: u32 = 63;
/// The quantizer of the first picture, and the one that is tried first for the second.
const FIRST: u32 = 50;
const SECOND: u32 = 40;
/// Quantizers that are tried for a picture at most.
const TRIES: u32 = 3;
/// Places for pictures in an encoder of VP9.
const PLACES: u32 = 8;
/// The difference of the logarithm of the size from one quantizer to the next, about.
const SLOPE: f64 = 0.19;
/// A size is as wanted if it is larger by no more than this, and smaller by no more than that.
const LARGER: f64 = 1.1;
const SMALLER: f64 = 0.85;
/// The number of pictures over which saved bytes are spent, but for no picture more than this share more than its own;
/// and bytes that were spent too much are saved, with this share less at most.
const SPREAD: f64 = 8.0;
const MORE: f64 = 0.15;
const LESS: f64 = 0.3;
/// Pictures whose bytes are saved up or owed at most.
const SAVED: f64 = 4.0;

/// One attempt: a quantizer, the bytes that it gave, and the place of the picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Tried {
    quantizer: u32,
    bytes: usize,
    place: u32,
}

/// The search for the quantizer of one picture.
#[derive(Clone, Copy, Debug)]
struct Search {
    wanted: f64,
    /// The highest quantizer that gave too much, and the lowest that did not; beyond all of them at first.
    too_much: u32,
    fits: u32,
    best: Option<Tried>,
}

impl Search {
    fn new(wanted: f64) -> Self {
        Self { wanted, too_much: LEAST - 1, fits: MOST + 1, best: None }
    }

    /// Takes note of an attempt; the quantizer to try next, if there is a better one.
    fn next(&mut self, tried: Tried) -> Option<u32> {
        let most = self.wanted * LARGER;
        let fits = |bytes: usize| bytes as f64 <= most;
        let is_better = self.best.is_none_or(|best| match fits(best.bytes) {
            true => fits(tried.bytes) && tried.bytes > best.bytes,
            false => tried.bytes < best.bytes,
        });
        if is_better {
            self.best = Some(tried);
        }
        match fits(tried.bytes) {
            true => self.fits = self.fits.min(tried.quantizer),
            false => self.too_much = self.too_much.max(tried.quantizer),
        }
        let is_wanted = fits(tried.bytes) && tried.bytes as f64 >= self.wanted * SMALLER;
        if is_wanted || self.fits <= self.too_much + 1 {
            return None;
        }
        let steps = ((tried.bytes.max(1) as f64 / self.wanted).ln() / SLOPE).round() as i64;
        let guess = u32::try_from(i64::from(tried.quantizer) + steps).unwrap_or(0);
        // What is left lies between the two.
        Some(guess.clamp(self.too_much + 1, self.fits - 1))
    }
}

/// The second encoder, and what the base layers so far took.
#[derive(Debug)]
pub(crate) struct Rehearsal {
    library: Library,
    /// The place of the picture before.
    place: u32,
    quantizer: u32,
    /// The bytes that a base layer has by its rate.
    share: f64,
    /// The bytes that the base layers so far left, negative if they took more.
    saved: f64,
}

impl Rehearsal {
    /// For an encoder with these settings.
    pub(crate) fn new(settings: &Settings) -> Result<Self, EncodeError> {
        let library = Library::open(settings, 1)?;
        let mut rehearsal = Self { library, place: 0, quantizer: SECOND, share: 0.0, saved: 0.0 };
        rehearsal.set_rate(settings);
        Ok(rehearsal)
    }

    /// The rate is that of `settings` from now on.
    pub(crate) fn set_rate(&mut self, settings: &Settings) {
        let (pictures, seconds) = settings.rate;
        let second = f64::from(settings.kilobits[0]) * 1000.0 / 8.0;
        self.share = (second * f64::from(seconds) / f64::from(pictures.max(1))).max(1.0);
    }

    /// The quantizer for the base layer of `picture`, which is of the kind; of one that begins a scene the highest is tried first.
    pub(crate) fn quantizer(
        &mut self,
        picture: &Picture,
        kind: Kind,
        begins_scene: bool,
    ) -> Result<u32, EncodeError> {
        let mut quantizer = match (kind, begins_scene) {
            (Kind::Key, _) => FIRST,
            (Kind::Inter, true) => MOST,
            (Kind::Inter, false) => self.quantizer,
        };
        let mut search = Search::new(self.wanted());
        for step in 1..=TRIES {
            let place = (self.place + step) % PLACES;
            let bytes = self.library.rehearse(picture, kind, (self.place, place), quantizer)?;
            match search.next(Tried { quantizer, bytes, place }) {
                Some(next) => quantizer = next,
                None => break,
            }
        }
        if let Some(best) = search.best {
            (self.place, self.quantizer) = (best.place, best.quantizer);
        }
        Ok(self.quantizer)
    }

    /// Returns the size that the next base layer is to have.
    fn wanted(&self) -> f64 {
        self.share + (self.saved / SPREAD).clamp(-LESS * self.share, MORE * self.share)
    }

    /// A base layer took so many bytes.
    pub(crate) fn on_encoded(&mut self, bytes: usize) {
        let most = SAVED * self.share;
        self.saved = (self.saved + self.share - bytes as f64).clamp(-most, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches from quantizer `first` on where `bytes` says what a quantizer gives; what was tried, and the best.
    fn search(wanted: f64, first: u32, bytes: impl Fn(u32) -> usize) -> (Vec<u32>, Option<Tried>) {
        let (mut search, mut tried, mut next) = (Search::new(wanted), Vec::new(), Some(first));
        while let Some(quantizer) = next {
            tried.push(quantizer);
            next = search.next(Tried { quantizer, bytes: bytes(quantizer), place: 0 });
        }
        (tried, search.best)
    }

    #[test]
    fn what_is_as_large_as_wanted_is_tried_once() {
        let (tried, best) = search(1000.0, 40, |_| 1050);
        assert_eq!((tried, best.map(|best| best.quantizer)), (vec![40], Some(40)));
    }

    #[test]
    fn the_search_ends_with_the_largest_that_is_not_too_large() {
        // A fifth less from one to the next, from 20 KB at 20 on.
        let bytes = |quantizer: u32| (20_000.0 * 0.82_f64.powi(quantizer as i32 - 20)) as usize;
        for first in LEAST..=MOST {
            let (tried, best) = search(1500.0, first, bytes);
            let best = best.expect("something was tried");
            assert!(
                best.bytes as f64 <= 1650.0 && bytes(best.quantizer - 1) as f64 > 1350.0,
                "{first}: {best:?}"
            );
            assert!(tried.len() <= 4, "{first}: {tried:?}");
        }
    }

    #[test]
    fn where_nothing_fits_it_is_the_highest_quantizer_and_where_all_fits_the_lowest() {
        for first in LEAST..=MOST {
            assert_eq!(search(1000.0, first, |_| 100_000).1.map(|best| best.bytes), Some(100_000));
            assert_eq!(search(1000.0, first, |_| 0).1.map(|best| best.bytes), Some(0));
            let quiet = search(1000.0, first, |quantizer| 200 - quantizer as usize).1;
            assert_eq!(quiet.map(|best| best.quantizer), Some(LEAST), "{first}");
            let wild = search(1000.0, first, |quantizer| 90_000 - quantizer as usize).1;
            assert_eq!(wild.map(|best| best.quantizer), Some(MOST), "{first}");
        }
    }

    #[test]
    fn a_search_in_what_follows_no_rule_ends() {
        let mut state = 1_u32;
        for round in 0..1000_u32 {
            let first = LEAST + round % (MOST - LEAST + 1);
            let sizes: Vec<usize> = (0..=MOST)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 18) as usize
                })
                .collect();
            let (tried, _) = search(1500.0, first, |quantizer| sizes[quantizer as usize]);
            assert!(
                tried.len() <= (MOST - LEAST + 1) as usize
                    && tried.iter().all(|q| (LEAST..=MOST).contains(q))
            );
        }
    }
}
