//! The files of a folder.

use super::{Answer, Body};
use crate::failure::{Exit, Failure, OrFail};
use http::{HeaderValue, Request, StatusCode};
use std::io;
use std::path::{Path, PathBuf};
use tokio::fs::{self, File};

/// What is sent for a folder.
const INDEX: &str = "index.html";

/// A folder whose files are offered. Nothing outside of it is, whatever paths and symbolic links say.
#[derive(Debug)]
pub(crate) struct Files {
    root: PathBuf,
}

impl Files {
    /// The files under `root`, which must be a folder.
    pub(crate) fn new(root: &Path) -> Result<Self, Failure> {
        let found = root.canonicalize().or_fail(Exit::Usage, || format!("--root {}", root.display()))?;
        if !found.is_dir() {
            return Err(Failure::new(Exit::Usage, format!("--root {} is not a folder", root.display())));
        }
        Ok(Self { root: found })
    }

    /// The answer to a request for `path`, which starts with a slash and is decoded.
    pub(super) async fn answer(&self, path: &str, request: &Request<()>) -> Answer {
        match self.find(path).await {
            Ok(Found::File(file, media_type, length)) => {
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

    async fn find(&self, path: &str) -> io::Result<Found> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        if path.split('/').any(|segment| segment == "..") {
            return Err(missing());
        }
        let mut wanted = self.root.join(path.trim_start_matches('/'));
        if path.ends_with('/') {
            wanted.push(INDEX);
        }
        let real = fs::canonicalize(&wanted).await?;
        if !real.starts_with(&self.root) {
            return Err(missing());
        }
        if fs::metadata(&real).await?.is_dir() {
            return Ok(Found::Folder);
        }
        let file = File::open(&real).await?;
        // Of the open file: the name may mean another one by now.
        let metadata = file.metadata().await?;
        if !metadata.is_file() {
            return Err(missing());
        }
        Ok(Found::File(file, media_type(&wanted), metadata.len()))
    }
}

enum Found {
    File(File, HeaderValue, u64),
    Folder,
}

/// The media type that the name of a file suggests.
fn media_type(path: &Path) -> HeaderValue {
    let guess = mime_guess::from_path(path).first_raw().unwrap_or("application/octet-stream");
    let charset = if guess.starts_with("text/") { "; charset=utf-8" } else { "" };
    HeaderValue::from_str(&format!("{guess}{charset}")).expect("the table holds valid media types")
}
