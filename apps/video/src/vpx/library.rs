//! The binding of an encoder of libvpx: what the part in C asks for, and what it gives.

use crate::layers::{LAYERS, LayerSet};
use crate::picture::Picture;
use crate::vpx::encoder::{EncodeError, Settings};
use crate::vpx::{MESSAGE, text, text_at};
use std::ffi::{c_char, c_int};
use std::ops::RangeInclusive;
use std::ptr::{self, NonNull};

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
    layers: u32,
}

#[repr(C)]
struct RawRange {
    least: u32,
    most: u32,
}

impl From<&RangeInclusive<u32>> for RawRange {
    fn from(range: &RangeInclusive<u32>) -> Self {
        Self { least: *range.start(), most: *range.end() }
    }
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
        quantizers: *const RawRange,
        bytes: *mut *const u8,
        length: *mut usize,
    ) -> c_int;
    fn hvq_vpx_rehearse(
        encoder: *mut Raw,
        picture: *const u8,
        key: c_int,
        from: u32,
        to: u32,
        quantizers: *const RawRange,
        length: *mut usize,
    ) -> c_int;
}

/// Tells whether a picture refers to none before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Key,
    Inter,
}

/// An encoder of libvpx. The pictures that it is given are of the size in its settings.
#[derive(Debug)]
pub(crate) struct Library {
    raw: NonNull<Raw>,
    bytes: usize,
}

// SAFETY: libvpx ties an encoder to no thread; it has one owner, and only `&mut` methods use it.
unsafe impl Send for Library {}

impl Library {
    /// One that encodes so many `layers`, from the base layer on.
    pub(crate) fn open(settings: &Settings, layers: usize) -> Result<Self, EncodeError> {
        let wide = |value: usize| u32::try_from(value).unwrap_or(0);
        let raw = RawSettings {
            width: wide(settings.width),
            height: wide(settings.height),
            pictures: settings.rate.0,
            seconds: settings.rate.1,
            kilobits: settings.kilobits,
            speed: settings.speed,
            layers: wide(layers.clamp(1, LAYERS)),
        };
        let mut message = [0_u8; MESSAGE];
        // SAFETY: both pointers are valid for the call, and the message has the room that the part in C is promised.
        let opened = unsafe { hvq_vpx_encoder_open(&raw, message.as_mut_ptr().cast()) };
        let raw = NonNull::new(opened).ok_or_else(|| EncodeError::Library(text(&message)))?;
        let (columns, rows) = (settings.width.div_ceil(2), settings.height.div_ceil(2));
        Ok(Self { raw, bytes: settings.width * settings.height + 2 * columns * rows })
    }

    pub(crate) fn set_rates(&mut self, kilobits: &[u32; LAYERS]) -> Result<(), EncodeError> {
        // SAFETY: the encoder is open, and the array has as many elements as the part in C reads.
        let failed = unsafe { hvq_vpx_encoder_set_rates(self.raw.as_ptr(), kilobits.as_ptr()) };
        self.check(failed)
    }

    /// Tells the encoder whether the next picture begins a scene.
    pub(crate) fn set_scene(&mut self, begins: bool) -> Result<(), EncodeError> {
        // SAFETY: the encoder is open.
        let failed = unsafe { hvq_vpx_encoder_set_scene(self.raw.as_ptr(), c_int::from(begins)) };
        self.check(failed)
    }

    /// The superframe of a picture, with one of these quantizers of the base layer.
    pub(crate) fn encode(
        &mut self,
        picture: &Picture,
        kind: Kind,
        fresh: LayerSet,
        quantizers: &RangeInclusive<u32>,
    ) -> Result<&[u8], EncodeError> {
        let data = self.data(picture)?;
        let (mut bytes, mut length) = (ptr::null(), 0);
        let (raw, key, range) =
            (self.raw.as_ptr(), c_int::from(kind == Kind::Key), RawRange::from(quantizers));
        // SAFETY: the encoder is open; the picture has the bytes that its size takes, which is the encoder's.
        let failed =
            unsafe { hvq_vpx_encode(raw, data, key, fresh.bits().into(), &range, &mut bytes, &mut length) };
        self.check(failed)?;
        Ok(match length {
            0 => &[],
            // SAFETY: libvpx gave `length` bytes there, valid until the next call, which needs `&mut self`.
            length => unsafe { std::slice::from_raw_parts(bytes, length) },
        })
    }

    /// Returns the size of the base layer of a picture with this quantizer, if it refers to the picture in the first of
    /// two `places`, of eight; the second keeps it. For an encoder of one layer.
    pub(crate) fn rehearse(
        &mut self,
        picture: &Picture,
        kind: Kind,
        (from, to): (u32, u32),
        quantizer: u32,
    ) -> Result<usize, EncodeError> {
        let data = self.data(picture)?;
        let (raw, key) = (self.raw.as_ptr(), c_int::from(kind == Kind::Key));
        let (range, mut length) = (RawRange { least: quantizer, most: quantizer }, 0);
        // SAFETY: the encoder is open; the picture has the bytes that its size takes, which is the encoder's.
        let failed = unsafe { hvq_vpx_rehearse(raw, data, key, from % 8, to % 8, &range, &mut length) };
        self.check(failed).map(|()| length)
    }

    /// The bytes of a picture of the right size.
    fn data(&self, picture: &Picture) -> Result<*const u8, EncodeError> {
        match picture.data().len() == self.bytes {
            true => Ok(picture.data().as_ptr()),
            false => Err(EncodeError::Library(format!("a picture of {} bytes", picture.data().len()))),
        }
    }

    fn check(&self, failed: c_int) -> Result<(), EncodeError> {
        if failed == 0 {
            return Ok(());
        }
        // SAFETY: the encoder is open.
        Err(EncodeError::Library(unsafe { text_at(hvq_vpx_encoder_message(self.raw.as_ptr())) }))
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: it is open, and closed here and nowhere else.
        unsafe { hvq_vpx_encoder_close(self.raw.as_ptr()) };
    }
}
