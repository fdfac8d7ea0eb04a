//! `hvq svc compare`: how like its source a recording is, picture by picture.

use super::pictures::Source;
use super::send::size;
use crate::arguments::Format;
use crate::failure::{Exit, Failure, OrFail};
use crate::output::{self, Voice};
use clap::Args;
use hvq_svc::ssim::ssim;
use serde_json::json;
use std::process::{Command, Stdio};

/// Arguments of `hvq svc compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// The recording
    #[arg(value_name = "FILE")]
    recording: String,
    /// What it is a recording of: a file that ffmpeg reads, or test
    #[arg(value_name = "SOURCE|test")]
    source: String,
    /// The size at which they are compared (by default each has its own, which must be the same)
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = size)]
    size: Option<(usize, usize)>,
    /// VMAF too, by an ffmpeg that has libvmaf
    #[arg(long)]
    vmaf: bool,
    #[command(flatten)]
    format: Format,
}

/// Compares, and prints what came of it.
pub(crate) fn run(arguments: &CompareArguments, voice: Voice) -> Result<(), Failure> {
    let CompareArguments { recording, source, size, vmaf, format } = arguments;
    let vmaf = if *vmaf { Some(vmaf_of(recording, source)?) } else { None };
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
    voice.say(format!("{} pictures, SSIM {mean:.4}, 5 % below {p5:.4}{vmaf}", values.len()));
    Ok(())
}

/// The mean VMAF of a recording by ffmpeg, which says it in a line on standard error.
fn vmaf_of(recording: &str, source: &str) -> Result<f64, Failure> {
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-nostats", "-nostdin", "-i", recording, "-i", source]);
    command.args(["-lavfi", "[0:v][1:v]scale2ref[a][b];[a][b]libvmaf", "-f", "null", "-"]);
    let output = command.stdin(Stdio::null()).output();
    let output = output.or_fail(Exit::Usage, || "cannot start ffmpeg (--vmaf needs one)".to_owned())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let score = said.lines().find_map(|line| line.split_once("VMAF score:")?.1.trim().parse().ok());
    score.ok_or_else(|| {
        let reason = match said.contains("No such filter: 'libvmaf'") {
            true => "this ffmpeg is built without libvmaf, as Debian's is",
            false => said.lines().last().unwrap_or("ffmpeg says nothing"),
        };
        Failure::new(Exit::Usage, format!("--vmaf: {}", reason.trim()))
    })
}
