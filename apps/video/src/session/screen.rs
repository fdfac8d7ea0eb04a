//! Sinks of pictures: a file, through `ffmpeg` unless it is to be YUV4MPEG2, a window of `ffplay`, or JPEG files by
//! `ffmpeg`.

use crate::picture::Picture;
use crate::y4m::{Format, write_header, write_picture};
use hvq_program::failure::{Exit, Failure, OrFail};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A JPEG file of more bytes than this is an error of ffmpeg.
const LARGEST_FILE: usize = 16 << 20;

/// Takes pictures of one size.
pub(super) struct Screen {
    output: Box<dyn Write + Send>,
    program: Option<(&'static str, Child)>,
    format: Format,
}

impl Screen {
    /// Checks that there is a format for a file called `path`, as ffmpeg sees it, which tries it on another of such a
    /// name.
    pub(super) fn check(path: &Path) -> Result<(), Failure> {
        let extension = path.extension().unwrap_or_default();
        if extension == "y4m" {
            return Ok(());
        }
        let probe = format!("hvq-recording-{}", std::process::id());
        let probe = std::env::temp_dir().join(probe).with_extension(extension);
        let mut command = Command::new("ffmpeg");
        command
            .args("-v error -nostdin -y -f lavfi -i color=s=64x64:r=30 -frames:v 1".split(' '))
            .arg(&probe);
        let tried = command.stdin(Stdio::null()).output();
        let _removed = std::fs::remove_file(&probe);
        let tried = tried.or_fail(Exit::Usage, || cannot_start("ffmpeg"))?;
        if tried.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&tried.stderr);
        let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
        // "[NULL @ 0x55…] Unable to find a suitable output format for …"
        let reason = said.split_once("] ").map_or(said, |(_, reason)| reason);
        let reason = reason.split(" for '").next().unwrap_or(reason);
        Err(Failure::new(Exit::Usage, format!("ffmpeg cannot record to {}: {reason}", path.display())))
    }

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
            (format, Stdio::null()),
        )
        .map(|(screen, _)| screen)
    }

    /// Shows the pictures in a window.
    pub(super) fn window(format: Format) -> Result<Self, Failure> {
        let arguments = ["-v", "error", "-autoexit", "-fflags", "nobuffer", "-f", "yuv4mpegpipe", "-i", "-"];
        Self::start("ffplay", &arguments, (format, Stdio::null())).map(|(screen, _)| screen)
    }

    /// Makes a JPEG file of each picture and hands it to `take`, on a thread of its own.
    pub(super) fn jpegs(format: Format, take: impl FnMut(Vec<u8>) + Send + 'static) -> Result<Self, Failure> {
        let arguments = "-v error -nostats -probesize 32 -analyzeduration 0 -f yuv4mpegpipe -i - -vsync passthrough \
                         -c:v mjpeg -q:v 4 -flush_packets 1 -f mpjpeg -";
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        let (screen, files) = Self::start("ffmpeg", &arguments, (format, Stdio::piped()))?;
        if let Some(files) = files {
            std::thread::spawn(move || hand_out(BufReader::new(files), take));
        }
        Ok(screen)
    }

    fn start(
        name: &'static str,
        arguments: &[&str],
        (format, stdout): (Format, Stdio),
    ) -> Result<(Self, Option<ChildStdout>), Failure> {
        let mut command = Command::new(name);
        command.args(arguments).stdin(Stdio::piped()).stdout(stdout);
        // Ctrl-C in a terminal is for this program, which then completes what it records.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().or_fail(Exit::Usage, || cannot_start(name))?;
        let input = child.stdin.take().expect("it was asked for");
        let output = child.stdout.take();
        let screen = Self::begin(Box::new(BufWriter::new(input)), Some((name, child)), format)?;
        Ok((screen, output))
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

    /// Takes the next picture, and sees that it is shown at once.
    pub(super) fn show_now(&mut self, picture: &Picture) -> Result<(), Failure> {
        self.show(picture)?;
        self.output.flush().or_fail(Exit::Runtime, || "cannot show the picture".to_owned())
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

/// Fails unless `name`, a program of ffmpeg's, is there.
pub(super) fn check_program(name: &str) -> Result<(), Failure> {
    let tried = Command::new(name).arg("-version").stdin(Stdio::null()).output();
    tried.map(drop).or_fail(Exit::Usage, || cannot_start(name))
}

fn cannot_start(name: &str) -> String {
    format!("cannot start {name} (install ffmpeg, or record to a file called *.y4m)")
}

/// Hands the bodies of a multipart message to `take` until it ends or is none.
fn hand_out(mut parts: impl BufRead, mut take: impl FnMut(Vec<u8>)) {
    while let Ok(Some(file)) = next_part(&mut parts) {
        take(file);
    }
}

/// The body of the next part, whose header says how long it is; `None` at the end.
fn next_part(parts: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if parts.by_ref().take(1 << 10).read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok().filter(|length| *length <= LARGEST_FILE);
        }
        if let (true, Some(length)) = (line.is_empty(), length) {
            let mut file = vec![0; length];
            parts.read_exact(&mut file)?;
            return Ok(Some(file));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_recorded_to_is_said_before_a_video_comes() {
        Screen::check(Path::new("a.y4m")).unwrap();
        Screen::check(Path::new("a.mkv")).unwrap();
        for name in ["a.nonsense", "a"] {
            let failure = Screen::check(Path::new(name)).unwrap_err();
            assert_eq!(failure.exit(), Exit::Usage);
            assert!(
                failure.line().starts_with(&format!("ffmpeg cannot record to {name}: ")),
                "{}",
                failure.line()
            );
        }
        let failure = check_program("ffplay-nonexistent").unwrap_err();
        assert!(failure.line().contains("ffplay-nonexistent"), "{}", failure.line());
    }

    #[test]
    fn parts_are_taken_one_after_another_and_what_is_none_ends_it() {
        let text = "--x\r\nContent-type: image/jpeg\r\nContent-length: 3\r\n\r\nabc\r\n--x\r\nContent-Length: 2\r\n\r\nde\r\n\
                    --x\r\nContent-length: 9\r\n\r\nshort";
        let mut files = Vec::new();
        hand_out(text.as_bytes(), |file| files.push(file));
        assert_eq!(files, [b"abc".to_vec(), b"de".to_vec()]);
        hand_out(&b"\xff\xfe"[..], |_| panic!("that is no text"));
    }
}
