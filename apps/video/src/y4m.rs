//! YUV4MPEG2, the format in which `ffmpeg` hands pictures through a pipe: a line about all pictures, then `FRAME` and the
//! planes of each.

use crate::picture::{LARGEST, Picture};
use std::io::{self, BufRead, Write};

/// The first word of a stream.
const MAGIC: &str = "YUV4MPEG2";
/// A line that is longer than this is none.
const LONGEST_LINE: u64 = 1024;

/// The format of the pictures, from the first line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// Pictures in a number of seconds.
    pub rate: (u32, u32),
}

/// The reason for which pictures cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Y4mError {
    /// It is something else.
    #[error("this is no YUV4MPEG2 stream: {0}")]
    NotY4m(String),
    /// It is one of a kind that is not understood here.
    #[error("{0}")]
    Unsupported(String),
    /// It ends within a picture.
    #[error("the stream ends within a picture")]
    Truncated,
    /// It cannot be read.
    #[error("cannot read pictures: {0}")]
    Io(#[from] io::Error),
}

/// Reads pictures.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    format: Format,
}

impl<R: BufRead> Reader<R> {
    /// Reads the first line.
    pub fn new(mut input: R) -> Result<Self, Y4mError> {
        let line = line(&mut input)?.ok_or_else(|| Y4mError::NotY4m("it is empty".into()))?;
        let mut words = line.split(' ');
        if words.next() != Some(MAGIC) {
            return Err(Y4mError::NotY4m(format!(
                "it begins with {:?}",
                line.chars().take(12).collect::<String>()
            )));
        }
        let (mut width, mut height, mut rate) = (None, None, (30, 1));
        for word in words.filter(|word| !word.is_empty()) {
            let (kind, value) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
            match kind {
                "W" => width = value.parse().ok(),
                "H" => height = value.parse().ok(),
                "F" => {
                    rate = ratio(value).ok_or_else(|| Y4mError::NotY4m(format!("frame rate {value:?}")))?
                }
                "C" if !value.starts_with("420") || value.starts_with("420p1") => {
                    return Err(Y4mError::Unsupported(format!(
                        "pictures of kind {value} are not understood, only 8 bits of 4:2:0 (ffmpeg -pix_fmt yuv420p)"
                    )));
                }
                _ => {}
            }
        }
        let size = |size: Option<usize>| size.filter(|size| (16..=LARGEST).contains(size));
        match (size(width), size(height)) {
            (Some(width), Some(height)) => Ok(Self { input, format: Format { width, height, rate } }),
            _ => Err(Y4mError::NotY4m(format!("width or height is missing, below 16 or above {LARGEST}"))),
        }
    }

    /// Returns the format of the pictures.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The next picture; `None` behind the last one.
    pub fn read(&mut self) -> Result<Option<Picture>, Y4mError> {
        match line(&mut self.input)? {
            None => return Ok(None),
            Some(line) if line == "FRAME" || line.starts_with("FRAME ") => {}
            Some(line) => return Err(Y4mError::NotY4m(format!("{line:?} where a picture should begin"))),
        }
        let mut picture = Picture::grey(self.format.width, self.format.height);
        self.input.read_exact(picture.data_mut()).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Y4mError::Truncated,
            _ => Y4mError::Io(error),
        })?;
        Ok(Some(picture))
    }
}

/// The first line of a stream of pictures like `format`.
pub fn write_header(output: &mut impl Write, format: Format) -> io::Result<()> {
    let Format { width, height, rate: (pictures, seconds) } = format;
    writeln!(output, "{MAGIC} W{width} H{height} F{pictures}:{seconds} Ip A1:1 C420jpeg")
}

/// A picture behind [`write_header`].
pub fn write_picture(output: &mut impl Write, picture: &Picture) -> io::Result<()> {
    output.write_all(b"FRAME\n")?;
    output.write_all(picture.data())
}

fn ratio(text: &str) -> Option<(u32, u32)> {
    let (pictures, seconds) = text.split_once(':')?;
    let ratio: (u32, u32) = (pictures.parse().ok()?, seconds.parse().ok()?);
    (ratio.0 > 0 && ratio.1 > 0).then_some(ratio)
}

/// The next line without its end; `None` at the end of the stream.
fn line(input: &mut impl BufRead) -> Result<Option<String>, Y4mError> {
    let mut line = Vec::new();
    io::Read::take(&mut *input, LONGEST_LINE).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(Y4mError::NotY4m("a line without an end".into()));
    }
    String::from_utf8(line).map(Some).map_err(|_| Y4mError::NotY4m("a line that is no text".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::test_picture;
    use proptest::prelude::*;

    fn stream(pictures: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let format = Format { width: 18, height: 17, rate: (30, 1) };
        write_header(&mut bytes, format).expect("memory takes everything");
        for number in 0..pictures {
            write_picture(&mut bytes, &test_picture(18, 17, number)).expect("memory takes everything");
        }
        bytes
    }

    #[test]
    fn pictures_are_read_as_they_were_written() {
        let bytes = stream(2);
        let mut reader = Reader::new(&bytes[..]).expect("a stream");
        assert_eq!(reader.format(), Format { width: 18, height: 17, rate: (30, 1) });
        for number in 0..2 {
            assert_eq!(reader.read().expect("a picture"), Some(test_picture(18, 17, number)));
        }
        assert_eq!(reader.read().expect("the end"), None);
    }

    #[test]
    fn wrong_streams_are_refused_with_the_reason() {
        let error = |bytes: &[u8]| Reader::new(bytes).expect_err("no stream").to_string();
        assert!(error(b"").contains("empty"));
        assert!(error(b"RIFF....AVI LIST\n").contains("RIFF....AVI "));
        assert!(error(b"YUV4MPEG2 W64 H48 C444\n").contains("yuv420p"));
        assert!(error(b"YUV4MPEG2 W64 H48 C420p10\n").contains("8 bits"));
        assert!(error(b"YUV4MPEG2 W64 H99999\n").contains("height"));
        assert!(error(b"YUV4MPEG2 W64 H48 F0:1\n").contains("rate"));
        assert!(error(&[b'Y'; 5000]).contains("without an end"));
        let bytes = stream(1);
        let mut reader = Reader::new(&bytes[..bytes.len() - 1]).expect("a stream");
        assert!(matches!(reader.read(), Err(Y4mError::Truncated)));
    }

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic(bytes: Vec<u8>) {
            let whole = [b"YUV4MPEG2 W16 H16 ", &bytes[..]].concat();
            if let Ok(mut reader) = Reader::new(&whole[..]) {
                let _ = reader.read();
            }
            let _ = Reader::new(&bytes[..]);
        }
    }
}
