//! `hvq video compare`: how like its source a recording is, picture by picture.

use super::pictures::{Source, TEST};
use super::send::size;
use crate::arguments::Format;
use crate::failure::{Exit, Failure, OrFail};
use crate::output;
use clap::Args;
use hvq_video::ssim::ssim;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Arguments of `hvq video compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// The recording
    #[arg(value_name = "FILE")]
    recording: String,
    /// The original of the recording: a file that ffmpeg reads, or test
    #[arg(value_name = "SOURCE|test")]
    source: String,
    /// The size at which they are compared (by default each has its own, which must be the same)
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = size)]
    size: Option<(usize, usize)>,
    /// VMAF too, by an ffmpeg that has libvmaf (Debian's has not: `scripts/vmaf.sh` finds or installs one)
    #[arg(long)]
    vmaf: bool,
    /// The ffmpeg for --vmaf
    #[arg(long, value_name = "PROGRAM", env = "HVQ_FFMPEG", default_value = "ffmpeg")]
    ffmpeg: PathBuf,
    #[command(flatten)]
    format: Format,
}

/// Compares, and prints what came of it.
pub(crate) fn run(arguments: &CompareArguments) -> Result<(), Failure> {
    let CompareArguments { recording, source, size, vmaf, ffmpeg, format } = arguments;
    let vmaf = if *vmaf { Some(vmaf_of(ffmpeg, (recording, source), *size)?) } else { None };
    let mut pictures = Source::open(recording, *size)?;
    let mut originals = Source::open(source, size.or(Some((pictures.width, pictures.height))))?;
    let mut values = Vec::new();
    while let (Some(picture), Some(original)) = (pictures.read()?, originals.read()?) {
        let value = ssim(&original, &picture)
            .or_fail(Exit::Usage, || format!("{recording} and {source} cannot be compared (say --size)"))?;
        values.push(value);
    }
    if values.is_empty() {
        return Err(Failure::new(Exit::Usage, format!("{recording} or {source} has no picture")));
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.sort_by(f64::total_cmp);
    let p5 = values[values.len() / 20];
    if format.json {
        let figures = json!({ "pictures": values.len(), "ssim": mean, "ssim_p5": p5, "vmaf": vmaf });
        return output::print(&figures.to_string());
    }
    let vmaf = vmaf.map_or_else(String::new, |score| format!(", VMAF {score:.1}"));
    output::print(&format!("{} pictures, SSIM {mean:.4}, 5 % below {p5:.4}{vmaf}", values.len()))
}

/// The mean VMAF of a recording by `ffmpeg`, which says it in a line on standard error. If one of both is longer, its
/// rest is left out.
fn vmaf_of(
    ffmpeg: &Path,
    (recording, source): (&str, &str),
    size: Option<(usize, usize)>,
) -> Result<f64, Failure> {
    let refused = |reason: &str| Failure::new(Exit::Usage, format!("--vmaf: {reason}"));
    if source == TEST {
        return Err(refused("a file is needed to compare with, not the test picture"));
    }
    if let Some(name) = [recording, source].into_iter().find(|name| !Path::new(name).exists()) {
        return Err(refused(&format!("cannot read {name}")));
    }
    let mut command = Command::new(ffmpeg);
    command.args(["-hide_banner", "-nostats", "-nostdin", "-i", recording, "-i", source]);
    command.args(["-lavfi", &filters(size), "-f", "null", "-"]);
    let program = ffmpeg.display();
    let output = command.stdin(Stdio::null()).output();
    let output = output
        .or_fail(Exit::Usage, || format!("--vmaf: cannot start {program} (name an ffmpeg with --ffmpeg)"))?;
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

/// Returns ffmpeg's filters for the recording and its source: both at 30 pictures a second, of one size, compared.
fn filters(size: Option<(usize, usize)>) -> String {
    let scaled = match size {
        Some((width, height)) => {
            let scale = format!("fps=30,scale={width}:{height}");
            format!("[0:v]{scale}[one];[1:v]{scale}[other]")
        }
        None => "[0:v]fps=30[a];[1:v]fps=30[b];[a][b]scale2ref[one][other]".to_owned(),
    };
    format!("{scaled};[one][other]libvmaf=shortest=1")
}
