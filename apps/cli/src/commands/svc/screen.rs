//! Where pictures go: a file, through `ffmpeg` unless it is to be YUV4MPEG2, or a window of `ffplay`.

use crate::failure::{Exit, Failure, OrFail};
use hvq_svc::picture::Picture;
use hvq_svc::y4m::{Format, write_header, write_picture};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Takes pictures of one size.
pub(super) struct Screen {
    output: Box<dyn Write + Send>,
    program: Option<(&'static str, Child)>,
    format: Format,
}

impl Screen {
    /// Writes to the file at `path`.
    pub(super) fn record(path: &Path, format: Format) -> Result<Self, Failure> {
        if path.extension().is_some_and(|extension| extension == "y4m") {
            let file =
                File::create(path).or_fail(Exit::Usage, || format!("cannot write {}", path.display()))?;
            return Self::begin(Box::new(BufWriter::new(file)), None, format);
        }
        let name = path.to_string_lossy();
        Self::start(
            "ffmpeg",
            &["-v", "error", "-nostats", "-y", "-f", "yuv4mpegpipe", "-i", "-", &name],
            format,
        )
    }

    /// Shows the pictures in a window.
    pub(super) fn window(format: Format) -> Result<Self, Failure> {
        let arguments = ["-v", "error", "-autoexit", "-fflags", "nobuffer", "-f", "yuv4mpegpipe", "-i", "-"];
        Self::start("ffplay", &arguments, format)
    }

    fn start(name: &'static str, arguments: &[&str], format: Format) -> Result<Self, Failure> {
        let started = Command::new(name).args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut child = started.or_fail(Exit::Usage, || {
            format!("cannot start {name} (install ffmpeg, or record to a file called *.y4m)")
        })?;
        let input = child.stdin.take().expect("it was asked for");
        Self::begin(Box::new(BufWriter::new(input)), Some((name, child)), format)
    }

    fn begin(
        mut output: Box<dyn Write + Send>,
        program: Option<(&'static str, Child)>,
        format: Format,
    ) -> Result<Self, Failure> {
        write_header(&mut output, format).or_fail(Exit::Runtime, || "cannot record".to_owned())?;
        Ok(Self { output, program, format })
    }

    /// Takes the next picture. Those of another size are left out: formats of files know one.
    pub(super) fn show(&mut self, picture: &Picture) -> Result<(), Failure> {
        if (picture.width(), picture.height()) != (self.format.width, self.format.height) {
            return Ok(());
        }
        let name = self.program.as_ref().map_or("the file", |(name, _)| name);
        let written = write_picture(&mut self.output, picture);
        written.or_fail(Exit::Runtime, || format!("cannot record: {name} takes no more pictures"))
    }

    /// Completes the file.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let Self { mut output, program, .. } = self;
        output.flush().or_fail(Exit::Runtime, || "cannot record".to_owned())?;
        drop(output);
        if let Some((name, mut child)) = program {
            let status = child.wait().or_fail(Exit::Runtime, || name.to_owned())?;
            if !status.success() {
                return Err(Failure::new(Exit::Runtime, format!("{name} failed: {status}")));
            }
        }
        Ok(())
    }
}
