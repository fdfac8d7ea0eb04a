//! The files of a folder.

use super::answer::CHUNK;
use super::{Answer, Body};
use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is sent for a folder.
const INDEX: &str = "index.html";

/// A folder whose files are offered. Nothing outside of it is, whatever paths and symbolic links say.
#[derive(Debug)]
pub struct Files {
    root: PathBuf,
}

impl Files {
    /// The files under `root`.
    ///
    /// # Errors
    /// There is nothing at `root`, or it is not a folder.
    pub fn new(root: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        if !root.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "this is not a folder"));
        }
        Ok(Self { root })
    }

    /// The answer to a request for `path`, which starts with a slash and is decoded.
    ///
    /// Looking a name up and reading a small file takes some microseconds; waking a thread that may wait for the disk takes
    /// ten times as long. So this waits itself, as nginx does, and only the chunks of large files are read elsewhere.
    pub fn answer(&self, path: &str, request: &Request<()>) -> Answer {
        match find(&self.root, path) {
            Ok(Found::Small(content, media_type)) => {
                let length = content.len() as u64;
                Answer::stretch(request, media_type, length, |range| Body::Text(slice(&content, range)))
            }
            Ok(Found::Large(file, media_type, length)) => {
                Answer::stretch(request, media_type, length, |range| Body::File(file, range))
            }
            Ok(Found::Folder) => Answer::moved(&format!("{}/", request.uri().path())),
            Err(error) => Answer::error(match error.kind() {
                io::ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
                // A path through a file, a name that is too long: nothing is there either.
                _ => StatusCode::NOT_FOUND,
            }),
        }
    }
}

/// What is at a path.
enum Found {
    /// A file that goes out in one piece.
    Small(Bytes, HeaderValue),
    /// An open file of so many bytes.
    Large(Arc<File>, HeaderValue, u64),
    /// A folder.
    Folder,
}

fn find(root: &Path, path: &str) -> io::Result<Found> {
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    if path.split('/').any(|segment| segment == "..") {
        return Err(missing());
    }
    let mut wanted = root.join(path.trim_start_matches('/'));
    if path.ends_with('/') {
        wanted.push(INDEX);
    }
    let real = wanted.canonicalize()?;
    if !real.starts_with(root) {
        return Err(missing());
    }
    // Only a file is opened: opening a pipe would wait for somebody who writes to it.
    let kind = std::fs::metadata(&real)?;
    if kind.is_dir() {
        return Ok(Found::Folder);
    }
    if !kind.is_file() {
        return Err(missing());
    }
    let mut file = File::open(&real)?;
    // Of the open file: the name may mean another one by now.
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(missing());
    }
    let length = metadata.len();
    if length > CHUNK as u64 {
        return Ok(Found::Large(Arc::new(file), media_type(&wanted), length));
    }
    let mut content = Vec::with_capacity(CHUNK.min(usize::try_from(length).unwrap_or(CHUNK)));
    (&mut file).take(length).read_to_end(&mut content)?;
    Ok(Found::Small(content.into(), media_type(&wanted)))
}

/// The bytes of `content` in `range`, which is within it.
fn slice(content: &Bytes, range: Range<u64>) -> Bytes {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(content.len());
    content.slice(place(range.start)..place(range.end))
}

/// The media type that the name of a file suggests.
fn media_type(path: &Path) -> HeaderValue {
    let guess = mime_guess::from_path(path).first_raw().unwrap_or("application/octet-stream");
    let charset = if guess.starts_with("text/") { "; charset=utf-8" } else { "" };
    HeaderValue::from_str(&format!("{guess}{charset}")).expect("the table holds valid media types")
}
