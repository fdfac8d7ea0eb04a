//! Where pictures go: a recording, a window, a page.

use super::super::screen::Screen;
use super::overlay;
use super::page::Gallery;
use crate::failure::{Exit, Failure, OrFail};
use clap::Args;
use hvq_svc::clip::Clip;
use hvq_svc::picture::Picture;
use hvq_svc::playout::Decoded;
use hvq_svc::y4m;
use hvq_vpx::Decoder;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;

/// A frame to be decoded: what is known of it, and the layers that a decoder is fed for it.
pub(super) type Pending = (Decoded, Vec<Vec<u8>>);

/// Where pictures go, and how.
#[derive(Clone, Debug, Args)]
pub(super) struct Display {
    /// Write the video to this file, whose name says the format: .y4m, or what ffmpeg knows (.mp4, .webm, .mkv)
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Show the video in a window (ffplay)
    #[arg(long, conflicts_with = "record")]
    play: bool,
    /// Draw this title, the latency and the layers of each picture into a strip below it
    #[arg(long, value_name = "TITLE")]
    strip: Option<String>,
}

impl Display {
    /// Decodes and shows frames; how many were damaged.
    ///
    /// A recording has 30 pictures a second, each the one that a viewer saw at that time: what stood still stands still.
    pub(super) fn show(
        &self,
        mut frames: mpsc::Receiver<Pending>,
        gallery: Option<&Gallery>,
    ) -> Result<u32, Failure> {
        let mut decoder = Decoder::new().or_fail(Exit::Runtime, || "cannot decode".to_owned())?;
        let (mut screen, mut page, mut damaged) = (None, None, 0);
        let mut seen: Option<(Duration, u32, Picture)> = None;
        while let Some((decoded, data)) = frames.blocking_recv() {
            let layers: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
            let Ok(mut picture) = decoder.decode(&layers) else {
                damaged += 1;
                continue;
            };
            if let Some(title) = &self.strip {
                picture = overlay::with_strip(&picture, title, decoded.latency(), decoded.depth);
            }
            if let Some(gallery) = gallery {
                if page.is_none() {
                    page = Some(gallery.screen(format_of(&picture))?);
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
        Ok(match (&self.record, self.play) {
            (Some(path), _) => Some(Screen::record(path, format)?),
            (None, true) => Some(Screen::window(format)?),
            (None, false) => None,
        })
    }
}

/// That of a video of pictures like `picture`.
fn format_of(picture: &Picture) -> y4m::Format {
    y4m::Format { width: picture.width(), height: picture.height(), rate: (30, 1) }
}
