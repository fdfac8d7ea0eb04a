//! The likeness of a recording to its source, picture by picture.

use super::Size;
use super::pictures::{Source, TEST};
use crate::ssim::ssim;
use hvq_program::failure::{Exit, Failure, OrFail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A recording and what it is compared with.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The recording: a file.
    pub recording: String,
    /// The original of the recording: a file that ffmpeg reads, or `test`.
    pub source: String,
    /// The size at which they are compared; `None` leaves each its own, which must be the same.
    pub size: Option<Size>,
    /// The ffmpeg that says the VMAF, with libvmaf; `None` leaves it out.
    pub vmaf: Option<PathBuf>,
}

/// The likeness of a recording to its source.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Likeness {
    /// The number of pictures.
    pub pictures: usize,
    /// The mean SSIM of the brightness.
    pub ssim: f64,
    /// The SSIM that 5 % of the pictures do not reach.
    pub ssim_p5: f64,
    /// The mean VMAF, if it was asked for.
    pub vmaf: Option<f64>,
}

impl Comparison {
    /// Compares the recording with its source, picture by picture.
    ///
    /// # Errors
    /// A file cannot be read, the sizes differ, or ffmpeg has no libvmaf ([`Exit::Usage`]).
    pub fn run(&self) -> Result<Likeness, Failure> {
        let Self { recording, source, size, vmaf } = self;
        let vmaf = vmaf.as_ref().map(|ffmpeg| self.vmaf_by(ffmpeg)).transpose()?;
        let mut pictures = Source::open(recording, *size)?;
        let own = Size { width: pictures.width, height: pictures.height };
        let mut originals = Source::open(source, size.or(Some(own)))?;
        let mut values = Vec::new();
        while let (Some(picture), Some(original)) = (pictures.read()?, originals.read()?) {
            let value = ssim(&original, &picture).or_fail(Exit::Usage, || {
                format!("{recording} and {source} cannot be compared (say --size)")
            })?;
            values.push(value);
        }
        if values.is_empty() {
            return Err(Failure::new(Exit::Usage, format!("{recording} or {source} has no picture")));
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.sort_by(f64::total_cmp);
        Ok(Likeness { pictures: values.len(), ssim: mean, ssim_p5: values[values.len() / 20], vmaf })
    }

    /// The mean VMAF of the recording by `ffmpeg`, which says it in a line on standard error. If one of both is longer,
    /// its rest is left out.
    fn vmaf_by(&self, ffmpeg: &Path) -> Result<f64, Failure> {
        let Self { recording, source, size, .. } = self;
        let refused = |reason: &str| Failure::new(Exit::Usage, format!("--vmaf: {reason}"));
        if source == TEST {
            return Err(refused("a file is needed to compare with, not the test picture"));
        }
        if let Some(name) = [recording, source].into_iter().find(|name| !Path::new(name).exists()) {
            return Err(refused(&format!("cannot read {name}")));
        }
        let mut command = Command::new(ffmpeg);
        command.args(["-hide_banner", "-nostats", "-nostdin", "-i", recording, "-i", source]);
        command.args(["-lavfi", &filters(*size), "-f", "null", "-"]);
        let program = ffmpeg.display();
        let output = command.stdin(Stdio::null()).output();
        let output = output.or_fail(Exit::Usage, || {
            format!("--vmaf: cannot start {program} (name an ffmpeg with --ffmpeg)")
        })?;
        let said = String::from_utf8_lossy(&output.stderr);
        let score = said.lines().find_map(|line| line.split_once("VMAF score:")?.1.trim().parse().ok());
        score.ok_or_else(|| match said.contains("No such filter: 'libvmaf'") {
        true => refused(&format!(
            "{program} is built without libvmaf, as Debian's is; name another with --ffmpeg (scripts/vmaf.sh finds one)"
        )),
        false => {
            let last = said.lines().rev().find(|line| !line.trim().is_empty());
            refused(&format!("{program}: {}", last.unwrap_or("it says nothing").trim()))
        }
    })
    }
}

/// Returns ffmpeg's filters for the recording and its source: both at 30 pictures a second, of one size, compared.
fn filters(size: Option<Size>) -> String {
    let scaled = match size {
        Some(Size { width, height }) => {
            let scale = format!("fps=30,scale={width}:{height}");
            format!("[0:v]{scale}[one];[1:v]{scale}[other]")
        }
        None => "[0:v]fps=30[a];[1:v]fps=30[b];[a][b]scale2ref[one][other]".to_owned(),
    };
    format!("{scaled};[one][other]libvmaf=shortest=1")
}
