//! The encoder.

use crate::layers::{LAYERS, LayerSet};
use crate::picture::{Picture, Plane};
use crate::superframe::{self, MalformedSuperframe};
use crate::vpx::library::{Kind, Library};
use crate::vpx::rehearsal::{LEAST, MOST, Rehearsal};

/// The settings of an encoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Width of the pictures in pixels.
    pub width: usize,
    /// Their height.
    pub height: usize,
    /// The frame rate: a number of pictures in a number of seconds.
    pub rate: (u32, u32),
    /// The rate of each layer by itself, in kbit/s.
    pub kilobits: [u32; LAYERS],
    /// The references of layers.
    pub references: References,
    /// The speed of libvpx for real time, from 5 (better) to 9 (faster); the base layer has the next better one.
    pub speed: u32,
    /// The way in which the base layer gets its size.
    pub base: Base,
}

/// The way in which the base layer gets its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Base {
    /// A second encoder tries quantizers for each picture, so that base layers are of even size and none is late for being
    /// large. It takes two fifths more of the processor's time.
    #[default]
    Rehearsed,
    /// By the rate control of libvpx, which keeps to the rate on average.
    Rated,
}

impl Settings {
    /// The rates of HotNets 2023, §3.3: 400, 4100 and 7500 kbit/s, 12 Mbit/s in all.
    pub const KILOBITS: [u32; LAYERS] = [400, 4100, 7500];

    /// Pictures of this size, 30 a second, as in the paper.
    pub fn new(width: usize, height: usize) -> Self {
        let (kilobits, references) = (Self::KILOBITS, References::default());
        Self { width, height, rate: (30, 1), kilobits, references, speed: 8, base: Base::default() }
    }
}

/// The references of layers. Each refers to the one below in the same frame, and the base layer to the base layer
/// before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct References {
    /// Every so many frames a layer above the base layer begins anew, without reference to frames before; 0 for never,
    /// as encoders usually do; 1 for always. The layers take turns, so that they are not large at the same time.
    pub period: u32,
}

impl Default for References {
    /// 16: after a loss the picture is whole again within 533 ms; data/video says what other periods cost.
    fn default() -> Self {
        Self { period: 16 }
    }
}

impl References {
    /// The layers of frame `number` that begin anew; of the first frame all.
    pub fn fresh(self, number: u32) -> LayerSet {
        if number == 0 {
            return LayerSet::ALL;
        }
        let begins = |layer: u32| {
            let phase = self.period * (layer - 1) / (LAYERS as u32 - 1);
            number.checked_rem(self.period).is_some_and(|turn| turn == phase)
        };
        (1..LAYERS as u32)
            .filter(|layer| begins(*layer))
            .fold(LayerSet::NONE, |set, layer| set.with(layer as usize))
    }
}

/// The reason for which nothing is encoded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EncodeError {
    /// libvpx refuses.
    #[error("libvpx: {0}")]
    Library(String),
    /// The picture is of another size than the others.
    #[error("a picture of {0}x{1} among those of {2}x{3}")]
    Size(usize, usize, usize, usize),
    /// The output of libvpx is not the layers that were asked for.
    #[error("libvpx made {0} layers of a picture, {LAYERS} are needed")]
    Layers(usize),
    /// It cannot be divided into layers.
    #[error("libvpx: {0}")]
    Superframe(#[from] MalformedSuperframe),
}

/// The distance of the pixels that are compared with the picture before.
const SAMPLED: usize = 7;
/// From this mean difference of brightness on, of 255, a picture begins a scene.
const CUT: u64 = 20;

/// An encoded picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encoded {
    /// The layers, lowest first.
    pub layers: [Vec<u8>; LAYERS],
    /// The layers that refer to no frame before.
    pub fresh: LayerSet,
}

/// Encodes pictures one after another.
#[derive(Debug)]
pub struct Encoder {
    library: Library,
    rehearsal: Option<Rehearsal>,
    settings: Settings,
    next: u32,
    /// The samples of the latest picture, for the comparison.
    sampled: Vec<u8>,
}

impl Encoder {
    /// An encoder for pictures as `settings` say.
    pub fn new(settings: Settings) -> Result<Self, EncodeError> {
        let library = Library::open(&settings, LAYERS)?;
        let rehearsal = match settings.base {
            Base::Rehearsed => Some(Rehearsal::new(&settings)?),
            Base::Rated => None,
        };
        Ok(Self { library, rehearsal, settings, next: 0, sampled: Vec::new() })
    }

    /// Other rates from the next picture on, in kbit/s.
    pub fn set_rates(&mut self, kilobits: [u32; LAYERS]) -> Result<(), EncodeError> {
        self.library.set_rates(&kilobits)?;
        self.settings.kilobits = kilobits;
        if let Some(rehearsal) = &mut self.rehearsal {
            rehearsal.set_rate(&self.settings);
        }
        Ok(())
    }

    /// Encodes the next picture; the first is a key frame. With one that begins a scene all layers above the base layer
    /// begin anew.
    pub fn encode(&mut self, picture: &Picture) -> Result<Encoded, EncodeError> {
        let Settings { width, height, references, .. } = self.settings;
        if (picture.width(), picture.height()) != (width, height) {
            return Err(EncodeError::Size(picture.width(), picture.height(), width, height));
        }
        let begins = self.begins_scene(picture);
        let fresh = match begins {
            true => (1..LAYERS).fold(references.fresh(self.next), LayerSet::with),
            false => references.fresh(self.next),
        };
        let kind = if self.next == 0 { Kind::Key } else { Kind::Inter };
        self.library.set_scene(begins)?;
        let quantizers = match &mut self.rehearsal {
            Some(rehearsal) => {
                let found = rehearsal.quantizer(picture, kind, begins)?;
                found..=found
            }
            None => LEAST..=MOST,
        };
        let layers = superframe::split(self.library.encode(picture, kind, fresh, &quantizers)?)?;
        let found = layers.len();
        let layers: [&[u8]; LAYERS] = layers.try_into().map_err(|_| EncodeError::Layers(found))?;
        let layers = layers.map(<[u8]>::to_vec);
        self.next = self.next.wrapping_add(1).max(1);
        if let Some(rehearsal) = &mut self.rehearsal {
            rehearsal.on_encoded(layers[0].len());
        }
        Ok(Encoded { layers, fresh })
    }

    /// Returns true if `picture` has little in common with the one before it, and takes note of it.
    fn begins_scene(&mut self, picture: &Picture) -> bool {
        let sampled: Vec<u8> = picture.plane(Plane::Y).iter().step_by(SAMPLED).copied().collect();
        let pairs = sampled.iter().zip(&self.sampled);
        let difference: u64 = pairs.map(|(one, other)| u64::from(one.abs_diff(*other))).sum();
        let begins = !self.sampled.is_empty() && difference >= CUT * sampled.len() as u64;
        self.sampled = sampled;
        begins
    }
}
