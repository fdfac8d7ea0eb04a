//! Displays of pictures: a recording, a window, a page.

use super::overlay;
use super::page_server::PageServer;
use crate::clip::Clip;
use crate::picture::Picture;
use crate::playout::Decoded;
use crate::session::screen::{self, Screen};
use crate::ssim::ssim;
use crate::vpx::{DecodeError, Decoder};
use crate::y4m;
use hvq_program::failure::{Exit, Failure, OrFail};
use hvq_program::output::check_writable;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;

/// A frame to be decoded: what is known of it, and the layers that a decoder is fed for it.
pub(super) type Pending = (Decoded, Vec<Vec<u8>>);

/// The number of frames of which one is compared with the picture of its base layer alone.
const COMPARED: u32 = 8;

/// The display of pictures.
#[derive(Clone, Debug)]
pub struct Display {
    destination: Destination,
    /// The title of the strip below pictures, if there is one.
    strip: Option<String>,
}

/// The destination of pictures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Destination {
    /// Nowhere.
    Nowhere,
    /// A file, whose name says the format: .y4m, or what ffmpeg knows (.mp4, .webm, .mkv). Further videos go to NAME-2 and
    /// so on.
    File(PathBuf),
    /// A window (ffplay).
    Window,
}

impl Display {
    /// Shows pictures at `destination`, with a strip that has the title `strip`, the latency and the layers below each, if there
    /// is a title.
    pub fn new(destination: Destination, strip: Option<String>) -> Self {
        Self { destination, strip }
    }

    /// Checks that a recording can be written or a window opened, which is to be known before a video comes.
    ///
    /// # Errors
    /// The file cannot be written, or a program is not there ([`Exit::Usage`]).
    pub fn check(&self) -> Result<(), Failure> {
        match &self.destination {
            Destination::Nowhere => Ok(()),
            Destination::Window => screen::check_program("ffplay"),
            Destination::File(path) => {
                check_writable(path)?;
                Screen::check(path)
            }
        }
    }

    /// For the video of this number, counted from 0: the first goes to the file that was named, and others beside it where
    /// nothing is, so that whoever sends next destroys no recording.
    pub(super) fn of_video(&self, number: u32) -> Self {
        let Destination::File(path) = &self.destination else { return self.clone() };
        let beside = |number| {
            let mut name = path.file_stem().unwrap_or_default().to_owned();
            name.push(format!("-{number}"));
            if let Some(extension) = path.extension() {
                name.push(".");
                name.push(extension);
            }
            path.with_file_name(name)
        };
        let path = match number {
            0 => path.clone(),
            _ => (number + 1..).map(beside).find(|path| !path.exists()).unwrap_or_else(|| path.clone()),
        };
        Self { destination: Destination::File(path), strip: self.strip.clone() }
    }

    /// Decodes and shows frames; how many were damaged. Into `learnt` goes what the layers above the base layer bring.
    ///
    /// A recording has 30 pictures a second, each the one that a viewer saw at that time: what stood still stands still.
    pub(super) fn show(
        &self,
        mut frames: mpsc::Receiver<Pending>,
        server: Option<&PageServer>,
        learnt: &mpsc::UnboundedSender<f64>,
    ) -> Result<u32, Failure> {
        let mut decoder = Decoder::new().or_fail(Exit::Runtime, || "cannot decode".to_owned())?;
        let (mut screen, mut page, mut damaged) = (None, None, 0);
        let mut seen: Option<(Duration, u32, Picture)> = None;
        while let Some((decoded, data)) = frames.blocking_recv() {
            let Ok((mut picture, better)) = decode(&mut decoder, &decoded, &data) else {
                damaged += 1;
                continue;
            };
            better.map(|better| learnt.send(better));
            if let Some(title) = &self.strip {
                picture = overlay::with_strip(&picture, title, decoded.latency(), decoded.depth);
            }
            if let Some(server) = server {
                if page.is_none() {
                    page = Some(server.screen(format_of(&picture))?);
                }
                page.as_mut().map_or(Ok(()), |page| page.show_now(&picture))?;
            }
            if screen.is_none() {
                screen = self.open(&picture)?;
            }
            let Some(screen) = &mut screen else { continue };
            let (start, mut written, last) = seen.take().unwrap_or_else(|| (decoded.at, 0, picture.clone()));
            let due = decoded.at.saturating_sub(start).as_nanos() / Clip::INTERVAL.as_nanos();
            while u128::from(written) < due {
                screen.show(&last)?;
                written += 1;
            }
            seen = Some((start, written, picture));
        }
        let Some(mut screen) = screen else { return Ok(damaged) };
        if let Some((_, _, last)) = seen {
            screen.show(&last)?;
        }
        screen.finish().map(|()| damaged)
    }

    /// The screen for pictures like `picture`, if there is to be one.
    fn open(&self, picture: &Picture) -> Result<Option<Screen>, Failure> {
        let format = format_of(picture);
        Ok(match &self.destination {
            Destination::File(path) => Some(Screen::record(path, format)?),
            Destination::Window => Some(Screen::window(format)?),
            Destination::Nowhere => None,
        })
    }
}

/// The picture of a frame, and of some how much better (SSIM) it is than that of the base layer alone.
fn decode(
    decoder: &mut Decoder,
    decoded: &Decoded,
    data: &[Vec<u8>],
) -> Result<(Picture, Option<f64>), DecodeError> {
    let layers: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let base = decoded.order.iter().position(|layer| *layer == (decoded.frame, 0));
    let compared = decoded.depth > 1 && decoded.frame.is_multiple_of(COMPARED);
    match base.filter(|_| compared).and_then(|base| layers.split_at_checked(base + 1)) {
        Some((until, above)) => {
            let plain = decoder.decode(until)?;
            let picture = decoder.decode(above)?;
            let better = ssim(&picture, &plain).ok().map(|alike| 1.0 - alike);
            Ok((picture, better))
        }
        None => Ok((decoder.decode(&layers)?, None)),
    }
}

/// Returns the format of a video of pictures like `picture`.
fn format_of(picture: &Picture) -> y4m::Format {
    y4m::Format { width: picture.width(), height: picture.height(), rate: (30, 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::{LAYERS, LayerSet};
    use crate::picture::test_picture;
    use crate::vpx::{Encoder, Settings};

    #[test]
    fn a_second_video_leaves_the_recording_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let first = folder.path().join("a.b.mkv");
        let display = Display::new(Destination::File(first.clone()), None);
        let path = |number| match display.of_video(number).destination {
            Destination::File(path) => path,
            other => panic!("{other:?}"),
        };
        assert_eq!([path(0), path(1)], [first, folder.path().join("a.b-2.mkv")]);
        std::fs::write(path(1), "precious").unwrap();
        assert_eq!(path(1), folder.path().join("a.b-3.mkv"));
    }

    #[test]
    fn what_layers_bring_is_known_of_some_frames_that_have_them() {
        let mut encoder = Encoder::new(Settings::new(320, 180)).unwrap();
        let (mut decoder, mut whole) = (Decoder::new().unwrap(), Decoder::new().unwrap());
        for frame in 0..=2 * COMPARED {
            let encoded = encoder.encode(&test_picture(320, 180, frame)).unwrap();
            let depth = if frame == COMPARED { 1 } else { LAYERS };
            let data = encoded.layers[..depth].to_vec();
            let order = (0..depth).map(|layer| (frame, layer)).collect();
            let (captured, at) = (Duration::ZERO, Duration::ZERO);
            let decoded = Decoded { frame, captured, at, present: LayerSet::ALL, depth, order };
            let (picture, better) = decode(&mut decoder, &decoded, &data).unwrap();
            let layers: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
            assert!(picture == whole.decode(&layers).unwrap(), "{frame}");
            let compared = frame.is_multiple_of(COMPARED) && depth > 1;
            assert_eq!(better.is_some(), compared, "{frame}");
            assert!(better.is_none_or(|better| (0.001..1.0).contains(&better)), "{better:?}");
        }
    }
}
