//! Sources of pictures: a file, through `ffmpeg` unless it is YUV4MPEG2, a camera, or a test picture; each at its time.

use super::Size;
use crate::picture::{Picture, test_picture};
use crate::y4m::{Format, Reader};
use hvq_program::failure::{Exit, Failure, OrFail};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The name that stands for the test picture.
pub(super) const TEST: &str = "test";
/// The name that stands for the first camera; another is named behind a colon.
const CAMERA: &str = "camera";
const FIRST_CAMERA: &str = "/dev/video0";

/// Pictures are left out when the next one is this many intervals late.
const LATE: u32 = 2;

/// Pictures, one after another.
pub(super) struct Source {
    kind: Kind,
    pub(super) width: usize,
    pub(super) height: usize,
    /// The frame rate: a number of pictures in a number of seconds.
    pub(super) rate: (u32, u32),
    next: u32,
    start: Option<Instant>,
    /// Pictures that were left out because what takes them was too slow.
    left_out: u32,
}

enum Kind {
    Test,
    File(Box<Reader<BufReader<Box<dyn Read + Send>>>>),
    Program(Box<Reader<BufReader<ChildStdout>>>, Ended),
}

/// A program that writes pictures, and what it says when it fails.
struct Ended {
    child: Child,
    said: Option<ChildStderr>,
}

impl Ended {
    /// Its last words, if it failed.
    fn complaint(&mut self) -> Option<String> {
        let status = self.child.wait().ok()?;
        let mut text = String::new();
        let _ = self.said.take()?.take(1 << 16).read_to_string(&mut text);
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
        (!status.success()).then(|| last.trim().to_owned())
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Source {
    /// Opens `name`, scaled to width and height, or of its own size if that is `None`.
    pub(super) fn open(name: &str, size: Option<Size>) -> Result<Self, Failure> {
        if name == TEST {
            let Size { width, height } = size.unwrap_or(Size { width: 640, height: 360 });
            return Ok(Self::of(Kind::Test, Format { width, height, rate: (30, 1) }));
        }
        if let Some(device) = camera(name) {
            let missing = || format!("there is no camera at {device} (name one as {CAMERA}:DEVICE)");
            std::fs::metadata(device).or_fail(Exit::Usage, missing)?;
            return Self::convert(name, &["-f", "v4l2", "-framerate", "30", "-i", device], size);
        }
        let unreadable = || format!("cannot read {name}");
        if name.ends_with(".y4m") && size.is_none() {
            let file: Box<dyn Read + Send> = Box::new(File::open(name).or_fail(Exit::Usage, unreadable)?);
            let reader = Reader::new(BufReader::new(file)).or_fail(Exit::Usage, || name.to_owned())?;
            let format = reader.format();
            return Ok(Self::of(Kind::File(Box::new(reader)), format));
        }
        if !name.contains("://") {
            File::open(name).or_fail(Exit::Usage, unreadable)?;
        }
        Self::convert(name, &["-i", name], size)
    }

    fn of(kind: Kind, format: Format) -> Self {
        let Format { width, height, rate } = format;
        Self { kind, width, height, rate, next: 0, start: None, left_out: 0 }
    }

    /// Lets ffmpeg read `name`, for which it takes the arguments `input`.
    fn convert(name: &str, input: &[&str], size: Option<Size>) -> Result<Self, Failure> {
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-nostdin"]).args(input).arg("-an");
        if let Some(Size { width, height }) = size {
            command.args(["-vf", &format!("scale={width}:{height}")]);
        }
        command.args(["-r", "30", "-pix_fmt", "yuv420p", "-f", "yuv4mpegpipe", "-"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.or_fail(Exit::Usage, || {
            format!("cannot start ffmpeg, which reads {name} (install it, or give a .y4m file or test)")
        })?;
        let pictures = BufReader::new(child.stdout.take().expect("it was asked for"));
        let mut ended = Ended { said: child.stderr.take(), child };
        match Reader::new(pictures) {
            Ok(reader) => {
                let format = reader.format();
                Ok(Self::of(Kind::Program(Box::new(reader), ended), format))
            }
            Err(error) => {
                let reason = ended.complaint().unwrap_or_else(|| error.to_string());
                Err(Failure::new(
                    Exit::Usage,
                    format!("{name} is no video that ffmpeg understands: {reason}"),
                ))
            }
        }
    }

    /// Time between two pictures.
    pub(super) fn interval(&self) -> Duration {
        Duration::from_secs(u64::from(self.rate.1)) / self.rate.0.max(1)
    }

    /// Waits until the next picture is due, and returns it; `None` behind the last one.
    ///
    /// A file is read as fast as it plays, like a camera. A caller that is too slow for that gets no more than every
    /// other picture until it is in time again.
    pub(super) fn next(&mut self) -> Result<Option<Picture>, Failure> {
        let start = *self.start.get_or_insert_with(Instant::now);
        let mut picture = self.read()?;
        let due = |source: &Self| start + source.interval() * (source.next - 1);
        if picture.is_some() && Instant::now() > due(self) + self.interval() * LATE {
            picture = self.read()?;
            self.left_out += 1;
        }
        std::thread::sleep(due(self).saturating_duration_since(Instant::now()));
        Ok(picture)
    }

    /// Returns the number of pictures until now, and the number of them that were left out.
    pub(super) fn count(&self) -> (u32, u32) {
        (self.next, self.left_out)
    }

    /// The next picture at once; `None` behind the last one.
    pub(super) fn read(&mut self) -> Result<Option<Picture>, Failure> {
        let number = self.next;
        self.next = number.saturating_add(1);
        match &mut self.kind {
            Kind::Test => Ok(Some(test_picture(self.width, self.height, number))),
            Kind::File(reader) => read(reader),
            Kind::Program(reader, ended) => match read(reader) {
                Ok(Some(picture)) => Ok(Some(picture)),
                end => match ended.complaint() {
                    Some(reason) => Err(Failure::new(Exit::Runtime, format!("ffmpeg: {reason}"))),
                    None => end,
                },
            },
        }
    }
}

/// The camera that `name` stands for.
fn camera(name: &str) -> Option<&str> {
    match name.strip_prefix(CAMERA)? {
        "" => Some(FIRST_CAMERA),
        device => device.strip_prefix(':').filter(|device| !device.is_empty()),
    }
}

fn read<R: BufRead>(reader: &mut Reader<R>) -> Result<Option<Picture>, Failure> {
    reader.read().or_fail(Exit::Runtime, || "the video".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_video_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing.mp4").to_string_lossy().into_owned();
        let failure = Source::open(&missing, None).err().unwrap();
        assert!(
            failure.exit() == Exit::Usage && failure.line().contains("missing.mp4"),
            "{}",
            failure.line()
        );
        let text = folder.path().join("text.y4m");
        std::fs::write(&text, "no video\n").unwrap();
        let failure = Source::open(&text.to_string_lossy(), None).err().unwrap();
        assert!(failure.line().contains("no YUV4MPEG2"), "{}", failure.line());
    }

    #[test]
    fn a_camera_that_is_not_there_is_named() {
        assert_eq!(camera("camera"), Some("/dev/video0"));
        assert_eq!([camera("camera:/dev/video3"), camera("camera.mp4")], [Some("/dev/video3"), None]);
        let failure = Source::open("camera:/nonexistent/video7", None).err().unwrap();
        assert!(
            failure.exit() == Exit::Usage && failure.line().contains("no camera at /nonexistent/video7"),
            "{}",
            failure.line()
        );
        // What is there and is none, ffmpeg refuses.
        let failure = Source::open("camera:/dev/null", None).err().unwrap();
        assert!(failure.line().contains("camera:/dev/null is no video"), "{}", failure.line());
    }

    #[test]
    fn every_other_picture_is_left_out_for_whoever_is_late() {
        let mut source = Source::open(TEST, Some(Size { width: 64, height: 48 })).unwrap();
        assert!(source.next().unwrap() == Some(test_picture(64, 48, 0)));
        source.start = Instant::now().checked_sub(Duration::from_secs(60));
        for number in [2, 4, 6] {
            assert!(source.next().unwrap() == Some(test_picture(64, 48, number)), "{number}");
        }
        assert_eq!(source.count(), (7, 3));
        // In time again: the next one.
        source.start = Some(Instant::now());
        assert!(source.next().unwrap() == Some(test_picture(64, 48, 7)));
        assert_eq!(source.count(), (8, 3));
    }

    #[test]
    fn test_pictures_come_as_fast_as_they_play() {
        let mut source = Source::open(TEST, Some(Size { width: 64, height: 48 })).unwrap();
        let start = Instant::now();
        for _ in 0..4 {
            assert!(source.next().unwrap().is_some());
        }
        assert!(start.elapsed() >= source.interval() * 3);
    }
}
