//! The files of a folder.

use super::kept::{Kept, Small};
use super::large::{Large, Memory};
use super::{Answer, Body};
use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A file of no more bytes is read at once.
const SMALL: u64 = 64 * 1024;
/// The file that is sent for a folder.
const INDEX: &str = "index.html";

/// The one folder with a dot that is there to be asked for (RFC 8615).
const WELL_KNOWN: &str = ".well-known";

/// Tells whether files are served whose names, or those of their folders, begin with a dot: `.git`, `.env`,
/// `.htpasswd`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DotFiles {
    /// No, except those below `/.well-known` (RFC 8615).
    #[default]
    Hidden,
    /// Yes, like all others.
    Served,
}

/// A folder whose files are offered. Nothing outside of it is, whatever paths and symbolic links say.
#[derive(Debug)]
pub struct Files {
    root: PathBuf,
    dot_files: DotFiles,
    kept: Kept,
    memory: Arc<Memory>,
}

impl Files {
    /// The default of the time for which a small file that was read counts as unchanged.
    pub const FRESH: Duration = Duration::from_secs(1);

    /// The files under `root`. A small one that was read is not looked at again for `fresh`; zero looks at it each time.
    ///
    /// # Errors
    /// There is nothing at `root`, or it is not a folder.
    pub fn new(root: &Path, fresh: Duration) -> io::Result<Self> {
        let root = root.canonicalize()?;
        if !root.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "this is not a folder"));
        }
        Ok(Self { root, dot_files: DotFiles::Hidden, kept: Kept::new(fresh), memory: Arc::default() })
    }

    /// Sets whether files are served whose names begin with a dot; they are not by default.
    pub fn with_dot_files(self, dot_files: DotFiles) -> Self {
        Self { dot_files, ..self }
    }

    /// The answer to a request for `path`, which starts with a slash and is decoded.
    ///
    /// Looking a name up and reading a small file takes some microseconds; waking a thread that may wait for the disk takes
    /// ten times as long. This function therefore waits itself, as nginx does, and only the chunks of large files are
    /// read elsewhere.
    pub fn answer(&self, path: &str, request: &Request<()>) -> Answer {
        let now = Instant::now();
        if let Some(small) = self.kept.get(path, now) {
            return piece(request, small);
        }
        let found = match self.hides(path) {
            true => Err(io::ErrorKind::NotFound.into()),
            false => find(&self.root, path),
        };
        match &found {
            Ok(Found::Small(small)) => self.kept.put(path, small, now),
            _ => self.kept.forget(path),
        }
        match found {
            Ok(Found::Small(small)) => piece(request, small),
            Ok(Found::Large(file, media_type, length)) => {
                let file = Large::new(file, self.memory.clone());
                Answer::stretch(request, media_type, length, |range| Body::File(file, range))
            }
            Ok(Found::Folder) => Answer::moved(&format!("{}/", request.uri().path())),
            Err(error) => Answer::error(match error.kind() {
                io::ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
                _ if names_nothing(&error) => StatusCode::NOT_FOUND,
                // No file can be opened any more, or the disk cannot be read: the file may well be there.
                _ => StatusCode::SERVICE_UNAVAILABLE,
            }),
        }
    }
}

/// Returns true if there is nothing where `error` was found: a path through a file, a name that is too long or has a byte that no
/// name has.
fn names_nothing(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | InvalidFilename | InvalidInput)
}

impl Files {
    /// Returns true if `path` names something that is not to be seen.
    fn hides(&self, path: &str) -> bool {
        let is_hidden = |segment: &str| segment.starts_with('.') && segment != ".";
        // Only at the top: what is so called elsewhere is not what RFC 8615 means.
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = path.strip_prefix(WELL_KNOWN).filter(|rest| rest.starts_with('/')).unwrap_or(path);
        self.dot_files == DotFiles::Hidden && path.split('/').any(is_hidden)
    }
}

/// The entry at a path.
enum Found {
    /// A file that goes out in one piece.
    Small(Small),
    /// An open file of so many bytes.
    Large(File, HeaderValue, u64),
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
    if length > SMALL {
        return Ok(Found::Large(file, media_type(&wanted), length));
    }
    let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    (&mut file).take(length).read_to_end(&mut content)?;
    Ok(Found::Small(Small { content: content.into(), media_type: media_type(&wanted) }))
}

/// Answers `request` with its part of a small file.
fn piece(request: &Request<()>, small: Small) -> Answer {
    let Small { content, media_type } = small;
    let length = content.len() as u64;
    Answer::stretch(request, media_type, length, |range| Body::Text(slice(&content, range)))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(answer: Answer) -> Option<Bytes> {
        match answer.body {
            Body::Text(text) if answer.head.status() == StatusCode::OK => Some(text),
            _ => None,
        }
    }

    fn files(fresh: Duration) -> (tempfile::TempDir, Files) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "old").unwrap();
        let files = Files::new(folder.path(), fresh).unwrap();
        (folder, files)
    }

    #[test]
    fn a_file_that_is_replaced_is_served_anew_once_its_time_is_over() {
        let request = Request::new(());
        let (folder, files) = files(Duration::from_millis(20));
        assert_eq!(text(files.answer("/a", &request)).unwrap(), "old");
        std::fs::write(folder.path().join("b"), "new").unwrap();
        std::fs::rename(folder.path().join("b"), folder.path().join("a")).unwrap();
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(text(files.answer("/a", &request)).unwrap(), "new");
        std::fs::remove_file(folder.path().join("a")).unwrap();
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(files.answer("/a", &request).head.status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn without_such_a_time_each_request_sees_the_file_as_it_is() {
        let request = Request::new(());
        let (folder, files) = files(Duration::ZERO);
        assert_eq!(text(files.answer("/a", &request)).unwrap(), "old");
        std::fs::write(folder.path().join("a"), "new").unwrap();
        assert_eq!(text(files.answer("/a", &request)).unwrap(), "new");
    }

    #[test]
    fn what_begins_with_a_dot_is_not_served_unless_it_is_asked_for() {
        let request = Request::new(());
        let (folder, files) = files(Duration::ZERO);
        for name in [".git", "sub", ".well-known", "sub/.well-known", ".well-known-not"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        for name in
            [".env", ".git/config", "sub/.htpasswd", ".well-known/a", ".well-known/.b", "sub/.well-known/a"]
        {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        let status = |files: &Files, path| files.answer(path, &request).head.status().as_u16();
        for path in [
            "/.env",
            "/.git/config",
            "/.git",
            "/.git/",
            "//.env",
            "/./.env",
            "/sub/.htpasswd",
            "/.well-known/.b",
            "/sub/.well-known/a",
            "/.well-known-not",
        ] {
            assert_eq!(status(&files, path), 404, "{path}");
        }
        assert_eq!(
            (status(&files, "/.well-known/a"), status(&files, "/a"), status(&files, "/./a")),
            (200, 200, 200)
        );
        let files = files.with_dot_files(DotFiles::Served);
        assert_eq!((status(&files, "/.env"), status(&files, "/.git/config")), (200, 200));
        assert_eq!(status(&files, "/../etc"), 404);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_cannot_be_opened_for_want_of_descriptors_is_not_said_to_be_missing() {
        use rustix::io::Errno;
        let system = |errno: Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        for missing in [Errno::NOENT, Errno::NOTDIR, Errno::NAMETOOLONG] {
            assert!(names_nothing(&system(missing)), "{missing}");
        }
        for other in [Errno::MFILE, Errno::NFILE, Errno::IO, Errno::NOMEM] {
            assert!(!names_nothing(&system(other)), "{other}");
        }
    }

    #[test]
    fn a_folder_is_found_at_this_host_however_many_slashes_its_path_begins_with() {
        let (folder, files) = files(Duration::ZERO);
        std::fs::create_dir(folder.path().join("evil.example")).unwrap();
        for path in ["/evil.example", "//evil.example", "///evil.example"] {
            let request = Request::get(format!("https://localhost{path}")).body(()).unwrap();
            let answer = files.answer(path, &request);
            assert_eq!(answer.head.status(), StatusCode::MOVED_PERMANENTLY, "{path}");
            // RFC 3986 §4.2: what begins with two slashes names a host.
            assert_eq!(answer.head.headers()["location"], "/evil.example/", "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_leads_outside_meanwhile_is_not_followed_longer_than_the_file_was_kept() {
        // A symbolic link in place of a file: the folder's bounds are looked at again.
        let request = Request::new(());
        let (folder, files) = files(Duration::from_millis(20));
        let outside = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(outside.path(), "secret").unwrap();
        assert_eq!(text(files.answer("/a", &request)).unwrap(), "old");
        std::fs::remove_file(folder.path().join("a")).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("a")).unwrap();
        assert_ne!(text(files.answer("/a", &request)).as_deref(), Some(&b"secret"[..]));
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(files.answer("/a", &request).head.status(), StatusCode::NOT_FOUND);
    }
}
