//! The output of an encoder for a clip: the bytes of each layer of each frame, and the likeness of each frame to its
//! source with and without the layers above. It stands for the encoder where only the network is of interest.

use crate::layers::{LAYERS, LayerSet};
use std::time::Duration;

/// The clips that are compiled in, by name.
const BUILTIN: [(&str, &str); 1] = [("bunny", include_str!("../../../data/video/bunny.csv"))];

/// The first line of the text form.
const HEADER: &str = "l0_bytes,l1_bytes,l2_bytes,fresh,l0_ssim,l1_ssim,l2_ssim";

/// A layer of more bytes than this is an error of the file.
const LARGEST: u32 = 4 << 20;

/// One frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Frame {
    /// The bytes of each layer.
    pub bytes: [u32; LAYERS],
    /// The layers that refer to no frame before: all of a key frame.
    pub fresh: LayerSet,
    /// The likeness to its source (SSIM) of the picture that a decoder makes of the layers up to this one, all that
    /// they refer to being there.
    pub ssim: [f64; LAYERS],
}

/// A clip of 30 frames a second. It begins with a key frame.
#[derive(Clone, PartialEq, Debug)]
pub struct Clip {
    frames: Vec<Frame>,
}

/// The reason for which a text is no clip.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ClipError {
    /// No clip has this name.
    #[error("no clip is called {0:?}: choose one of {names}", names = Clip::names().join(", "))]
    Unknown(String),
    /// The first line is another.
    #[error("a clip begins with the line {HEADER}")]
    Header,
    /// A line, counted from 1, is none of a frame.
    #[error("line {0}: three sizes, a set of layers of 0 to 7 and three values of SSIM are expected")]
    Frame(usize),
    /// There is no frame, or the first is no key frame.
    #[error("a clip begins with a key frame")]
    NoKeyFrame,
}

impl Clip {
    /// Time between two frames.
    pub const INTERVAL: Duration = Duration::from_nanos(33_333_333);

    /// A clip of these frames.
    pub fn new(frames: Vec<Frame>) -> Result<Self, ClipError> {
        match frames.first() {
            Some(first) if first.fresh == LayerSet::ALL => Ok(Self { frames }),
            _ => Err(ClipError::NoKeyFrame),
        }
    }

    /// The names of the clips that are compiled in.
    pub fn names() -> [&'static str; BUILTIN.len()] {
        BUILTIN.map(|(name, _)| name)
    }

    /// The clip of this name.
    pub fn builtin(name: &str) -> Result<Self, ClipError> {
        let found = BUILTIN.iter().find(|(known, _)| *known == name);
        let (_, text) = found.ok_or_else(|| ClipError::Unknown(name.to_owned()))?;
        Self::parse(text)
    }

    /// Reads the text form: a line of names, then one a frame, with sizes in bytes, the layers that begin anew as a number
    /// (bit k for layer k), and SSIM.
    pub fn parse(text: &str) -> Result<Self, ClipError> {
        let mut lines = text.lines().zip(1..);
        if lines.next().map(|(line, _)| line) != Some(HEADER) {
            return Err(ClipError::Header);
        }
        let frames: Result<Vec<Frame>, ClipError> =
            lines.map(|(line, number)| frame(line).ok_or(ClipError::Frame(number))).collect();
        Self::new(frames?)
    }

    /// The text form.
    pub fn text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for Frame { bytes: [a, b, c], fresh, ssim: [x, y, z] } in &self.frames {
            text.push_str(&format!("{a},{b},{c},{},{x:.4},{y:.4},{z:.4}\n", fresh.bits()));
        }
        text
    }

    /// Frame `number` of a video that plays the clip again and again.
    pub fn frame(&self, number: u32) -> &Frame {
        &self.frames[number as usize % self.frames.len()]
    }

    /// Its frames.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// The mean rate of each layer in bits per second.
    pub fn rates(&self) -> [f64; LAYERS] {
        let seconds = Self::INTERVAL.as_secs_f64() * self.frames.len() as f64;
        std::array::from_fn(|layer| {
            let bytes: u64 = self.frames.iter().map(|frame| u64::from(frame.bytes[layer])).sum();
            bytes as f64 * 8.0 / seconds
        })
    }
}

fn frame(line: &str) -> Option<Frame> {
    let mut values = line.split(',');
    let mut sizes = [0; LAYERS];
    for size in &mut sizes {
        *size = values.next()?.parse().ok().filter(|bytes| (1..=LARGEST).contains(bytes))?;
    }
    let fresh = values.next()?.parse().ok().filter(|bits| *bits <= LayerSet::ALL.bits())?;
    let mut ssim = [0.0; LAYERS];
    for value in &mut ssim {
        *value = values.next()?.parse().ok().filter(|ssim| (-1.0..=1.0).contains(ssim))?;
    }
    let fresh = LayerSet::from_bits(fresh);
    values.next().is_none().then_some(Frame { bytes: sizes, fresh, ssim })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clips_that_are_compiled_in_have_the_rates_of_the_paper() {
        // HotNets 2023, §3.3: 400, 4100 and 7500 kbit/s.
        for name in Clip::names() {
            let clip = Clip::builtin(name).expect("a clip that is compiled in");
            for (rate, target) in clip.rates().into_iter().zip([400e3, 4100e3, 7500e3]) {
                assert!((rate / target - 1.0).abs() < 0.1, "{name}: {rate} for {target}");
            }
            let mean = |layer: usize| {
                clip.frames().iter().map(|frame| frame.ssim[layer]).sum::<f64>() / clip.frames().len() as f64
            };
            assert!(mean(0) > 0.8 && mean(0) < mean(1) && mean(1) < mean(2), "{name}");
        }
    }

    #[test]
    fn clips_are_written_as_they_are_read() {
        let text =
            format!("{HEADER}\n100,2000,3000,7,0.9000,0.9500,0.9800\n50,600,700,2,0.8900,0.9400,0.9700\n");
        let clip = Clip::parse(&text).expect("a clip");
        assert_eq!(clip.text(), text);
        assert_eq!((clip.frame(3).bytes, clip.frame(2).fresh), ([50, 600, 700], LayerSet::ALL));
    }

    #[test]
    fn other_texts_are_refused() {
        let error = |lines: &str| Clip::parse(&format!("{HEADER}\n{lines}")).expect_err("no clip");
        let good = "100,2000,3000,7,0.9,0.95,0.98\n";
        for line in [
            "",
            "1,2,3,7,0.9,0.9",
            "0,2,3,7,0.9,0.9,0.9",
            "1,2,3,8,0.9,0.9,0.9",
            "1,2,3,7,0.9,0.9,2",
            "1,2,3,7,0.9,0.9,0.9,1",
        ] {
            assert_eq!(error(&format!("{good}{line}\n")), ClipError::Frame(3), "{line}");
        }
        assert_eq!(error("1,2,3,1,0.9,0.9,0.9\n"), ClipError::NoKeyFrame);
        assert_eq!(error(""), ClipError::NoKeyFrame);
        assert_eq!(Clip::parse("frame"), Err(ClipError::Header));
        assert!(Clip::builtin("x").expect_err("no such clip").to_string().contains("bunny"));
    }
}
