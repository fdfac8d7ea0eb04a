//! `hvq video compare`: how like its source a recording is, picture by picture.

use super::size;
use crate::arguments::Format;
use crate::failure::Failure;
use crate::output;
use clap::Args;
use hvq_video::session::Size;
use hvq_video::session::compare::{Comparison, Likeness};
use serde_json::json;
use std::path::PathBuf;

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
    size: Option<Size>,
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
    let comparison = Comparison {
        recording: arguments.recording.clone(),
        source: arguments.source.clone(),
        size: arguments.size,
        vmaf: arguments.vmaf.then(|| arguments.ffmpeg.clone()),
    };
    let Likeness { pictures, ssim, ssim_p5, vmaf } = comparison.run()?;
    if arguments.format.json {
        let figures = json!({ "pictures": pictures, "ssim": ssim, "ssim_p5": ssim_p5, "vmaf": vmaf });
        return output::print(&figures.to_string());
    }
    let vmaf = vmaf.map_or_else(String::new, |score| format!(", VMAF {score:.1}"));
    output::print(&format!("{pictures} pictures, SSIM {ssim:.4}, 5 % below {ssim_p5:.4}{vmaf}"))
}
