//! The decoder.

use crate::picture::{LARGEST, Picture};
use crate::vpx::{MESSAGE, text, text_at};
use std::ffi::{c_char, c_int};
use std::ptr::NonNull;

/// The reason for which there is no picture.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// libvpx cannot decode it: it is damaged, or refers to what is missing.
    #[error("libvpx: {0}")]
    Library(String),
    /// It is a picture of a kind or size that is not understood here.
    #[error("the picture is none of 8 bits of 4:2:0, or larger than {LARGEST} pixels")]
    Unsupported,
}

/// Decodes layers one after another, lowest first.
#[derive(Debug)]
pub struct Decoder {
    raw: NonNull<Raw>,
}

#[repr(C)]
struct Raw {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn hvq_vpx_decoder_open(message: *mut c_char) -> *mut Raw;
    fn hvq_vpx_decoder_close(decoder: *mut Raw);
    fn hvq_vpx_decoder_message(decoder: *const Raw) -> *const c_char;
    fn hvq_vpx_decode(decoder: *mut Raw, bytes: *const u8, length: usize) -> c_int;
    fn hvq_vpx_decoder_size(decoder: *const Raw, width: *mut u32, height: *mut u32);
    fn hvq_vpx_decoder_picture(decoder: *const Raw, picture: *mut u8);
}

// SAFETY: libvpx ties a decoder to no thread; it has one owner, and only `&mut` methods use it.
unsafe impl Send for Decoder {}

impl Decoder {
    /// A decoder at the start of a video.
    pub fn new() -> Result<Self, DecodeError> {
        let mut message = [0_u8; MESSAGE];
        // SAFETY: the message has the room that the part in C is promised.
        let opened = unsafe { hvq_vpx_decoder_open(message.as_mut_ptr().cast()) };
        NonNull::new(opened).map(|raw| Self { raw }).ok_or_else(|| DecodeError::Library(text(&message)))
    }

    /// Decodes the layers of one frame, which may be fewer than there are, but without a gap from the base layer on.
    /// Returns the picture of the last; what decoders are fed may be anything.
    pub fn decode(&mut self, layers: &[&[u8]]) -> Result<Picture, DecodeError> {
        let raw = self.raw.as_ptr();
        for layer in layers {
            if layer.is_empty() || u32::try_from(layer.len()).is_err() {
                return Err(DecodeError::Library("a layer without bytes, or of too many".into()));
            }
            // SAFETY: the decoder is open, and the slice is valid for its length.
            if unsafe { hvq_vpx_decode(raw, layer.as_ptr(), layer.len()) } != 0 {
                // SAFETY: the decoder is open.
                return Err(DecodeError::Library(unsafe { text_at(hvq_vpx_decoder_message(raw)) }));
            }
        }
        let (mut width, mut height) = (0, 0);
        // SAFETY: the decoder is open, and both pointers are valid.
        unsafe { hvq_vpx_decoder_size(raw, &mut width, &mut height) };
        let (width, height) = (width as usize, height as usize);
        if layers.is_empty() || !(1..=LARGEST).contains(&width) || !(1..=LARGEST).contains(&height) {
            return Err(DecodeError::Unsupported);
        }
        let mut picture = Picture::grey(width, height);
        // SAFETY: there is a picture, or its size would be zero, and `picture` has the bytes that this size takes.
        unsafe { hvq_vpx_decoder_picture(raw, picture.data_mut().as_mut_ptr()) };
        Ok(picture)
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: it is open, and closed here and nowhere else.
        unsafe { hvq_vpx_decoder_close(self.raw.as_ptr()) };
    }
}
