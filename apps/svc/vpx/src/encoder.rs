//! The encoder.

use crate::{MESSAGE, text, text_at};
use hvq_svc::layers::{LAYERS, LayerSet};
use hvq_svc::picture::{Picture, Plane};
use hvq_svc::superframe::{self, MalformedSuperframe};
use std::ffi::{c_char, c_int};
use std::ptr::{self, NonNull};

/// What is to be encoded, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Width of the pictures in pixels.
    pub width: usize,
    /// Their height.
    pub height: usize,
    /// So many pictures in so many seconds.
    pub rate: (u32, u32),
    /// The rate of each layer by itself, in kbit/s.
    pub kilobits: [u32; LAYERS],
    /// What layers refer to.
    pub references: References,
    /// The speed of libvpx for real time, from 5 (better) to 9 (faster).
    pub speed: u32,
}

impl Settings {
    /// The rates of HotNets 2023, §3.3: 400, 4100 and 7500 kbit/s, 12 Mbit/s in all.
    pub const KILOBITS: [u32; LAYERS] = [400, 4100, 7500];

    /// Pictures of this size, 30 a second, as in the paper.
    pub fn new(width: usize, height: usize) -> Self {
        let (kilobits, references) = (Self::KILOBITS, References::default());
        Self { width, height, rate: (30, 1), kilobits, references, speed: 8 }
    }
}

/// What layers refer to. Each refers to the one below in the same frame, and the base layer to the base layer before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct References {
    /// Every so many frames a layer above the base layer begins anew, without reference to frames before; 0 for never,
    /// as encoders usually do; 1 for always. The layers take turns, so that they are not large at the same time.
    pub period: u32,
}

impl Default for References {
    /// 8: after a loss the picture is whole again within 267 ms, for half a hundredth of SSIM.
    fn default() -> Self {
        Self { period: 8 }
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

/// Why nothing is encoded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EncodeError {
    /// libvpx refuses.
    #[error("libvpx: {0}")]
    Library(String),
    /// The picture is of another size than the others.
    #[error("a picture of {0}x{1} among those of {2}x{3}")]
    Size(usize, usize, usize, usize),
    /// What libvpx made are not the layers that were asked for.
    #[error("libvpx made {0} layers of a picture, {LAYERS} are needed")]
    Layers(usize),
    /// It cannot be divided into layers.
    #[error("libvpx: {0}")]
    Superframe(#[from] MalformedSuperframe),
}

/// Of each picture one pixel in so many is compared with the picture before.
const SAMPLED: usize = 7;
/// From this mean difference of brightness on, of 255, a picture begins a scene.
const CUT: u64 = 20;

/// An encoded picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encoded {
    /// The layers, lowest first.
    pub layers: [Vec<u8>; LAYERS],
    /// Those that refer to no frame before.
    pub fresh: LayerSet,
}

/// Encodes pictures one after another.
#[derive(Debug)]
pub struct Encoder {
    raw: NonNull<Raw>,
    settings: Settings,
    next: u32,
    /// What was compared of the latest picture.
    sampled: Vec<u8>,
}

#[repr(C)]
struct Raw {
    _opaque: [u8; 0],
}

#[repr(C)]
struct RawSettings {
    width: u32,
    height: u32,
    pictures: u32,
    seconds: u32,
    kilobits: [u32; LAYERS],
    speed: u32,
}

unsafe extern "C" {
    fn hvq_vpx_encoder_open(settings: *const RawSettings, message: *mut c_char) -> *mut Raw;
    fn hvq_vpx_encoder_close(encoder: *mut Raw);
    fn hvq_vpx_encoder_message(encoder: *const Raw) -> *const c_char;
    fn hvq_vpx_encoder_set_rates(encoder: *mut Raw, kilobits: *const u32) -> c_int;
    fn hvq_vpx_encoder_set_scene(encoder: *mut Raw, scene: c_int) -> c_int;
    fn hvq_vpx_encode(
        encoder: *mut Raw,
        picture: *const u8,
        key: c_int,
        fresh: u32,
        bytes: *mut *const u8,
        length: *mut usize,
    ) -> c_int;
}

// SAFETY: libvpx ties an encoder to no thread; it has one owner, and only `&mut` methods use it.
unsafe impl Send for Encoder {}

impl Encoder {
    /// An encoder for pictures as `settings` say.
    pub fn new(settings: Settings) -> Result<Self, EncodeError> {
        let wide = |value: usize| u32::try_from(value).unwrap_or(0);
        let raw = RawSettings {
            width: wide(settings.width),
            height: wide(settings.height),
            pictures: settings.rate.0,
            seconds: settings.rate.1,
            kilobits: settings.kilobits,
            speed: settings.speed,
        };
        let mut message = [0_u8; MESSAGE];
        // SAFETY: both pointers are valid for the call, and the message has the room that the part in C is promised.
        let opened = unsafe { hvq_vpx_encoder_open(&raw, message.as_mut_ptr().cast()) };
        let raw = NonNull::new(opened).ok_or_else(|| EncodeError::Library(text(&message)))?;
        Ok(Self { raw, settings, next: 0, sampled: Vec::new() })
    }

    /// Other rates from the next picture on, in kbit/s.
    pub fn set_rates(&mut self, kilobits: [u32; LAYERS]) -> Result<(), EncodeError> {
        // SAFETY: the encoder is open, and the array has as many elements as the part in C reads.
        let failed = unsafe { hvq_vpx_encoder_set_rates(self.raw.as_ptr(), kilobits.as_ptr()) };
        if failed != 0 {
            return Err(self.failure());
        }
        self.settings.kilobits = kilobits;
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
        // SAFETY: the encoder is open.
        if unsafe { hvq_vpx_encoder_set_scene(self.raw.as_ptr(), c_int::from(begins)) } != 0 {
            return Err(self.failure());
        }
        let key = c_int::from(self.next == 0);
        let (mut bytes, mut length) = (ptr::null(), 0);
        let (raw, data) = (self.raw.as_ptr(), picture.data().as_ptr());
        // SAFETY: the encoder is open; the picture has the bytes that its size takes, which is the encoder's.
        let failed = unsafe { hvq_vpx_encode(raw, data, key, fresh.bits().into(), &mut bytes, &mut length) };
        if failed != 0 {
            return Err(self.failure());
        }
        let whole = match length {
            0 => &[],
            // SAFETY: libvpx gave `length` bytes there, valid until the next call; they are copied before that.
            length => unsafe { std::slice::from_raw_parts(bytes, length) },
        };
        self.next = self.next.wrapping_add(1).max(1);
        let layers = superframe::split(whole)?;
        let found = layers.len();
        let layers: [&[u8]; LAYERS] = layers.try_into().map_err(|_| EncodeError::Layers(found))?;
        Ok(Encoded { layers: layers.map(<[u8]>::to_vec), fresh })
    }

    /// Whether `picture` has little in common with the one before it, and takes note of it.
    fn begins_scene(&mut self, picture: &Picture) -> bool {
        let sampled: Vec<u8> = picture.plane(Plane::Y).iter().step_by(SAMPLED).copied().collect();
        let pairs = sampled.iter().zip(&self.sampled);
        let difference: u64 = pairs.map(|(one, other)| u64::from(one.abs_diff(*other))).sum();
        let begins = !self.sampled.is_empty() && difference >= CUT * sampled.len() as u64;
        self.sampled = sampled;
        begins
    }

    fn failure(&self) -> EncodeError {
        // SAFETY: the encoder is open.
        EncodeError::Library(unsafe { text_at(hvq_vpx_encoder_message(self.raw.as_ptr())) })
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: it is open, and closed here and nowhere else.
        unsafe { hvq_vpx_encoder_close(self.raw.as_ptr()) };
    }
}
