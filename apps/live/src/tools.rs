//! The places of programs, and of the files of experiments.

use crate::error::{LiveError, cannot};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The programs that experiments use besides those that they find on the PATH.
#[derive(Clone, Debug)]
pub struct Tools {
    /// This program, whose `run`, `gateway` and `proxy` are used.
    pub hvq: PathBuf,
    /// Nginx with HTTP/2 and HTTP/3.
    pub nginx: PathBuf,
    /// h2load with HTTP/3.
    pub h2load: PathBuf,
    /// Chromium.
    pub chromium: PathBuf,
}

impl Tools {
    /// Finds Nginx.
    ///
    /// # Errors
    /// It is not there.
    pub fn nginx(&self) -> Result<PathBuf, LiveError> {
        found(&self.nginx).ok_or(LiveError::Missing {
            program: "nginx",
            remedy: "name it with --nginx; make live compiles one with HTTP/3",
        })
    }

    /// Finds h2load.
    ///
    /// # Errors
    /// It is not there.
    pub fn h2load(&self) -> Result<PathBuf, LiveError> {
        found(&self.h2load).ok_or(LiveError::Missing {
            program: "h2load",
            remedy: "name one that has HTTP/3 with --h2load; make live compiles it",
        })
    }

    /// Finds Chromium.
    ///
    /// # Errors
    /// It is not there.
    pub fn chromium(&self) -> Result<PathBuf, LiveError> {
        found(&self.chromium).ok_or(LiveError::Missing {
            program: "chromium",
            remedy: "install it (Debian: package chromium) or name it with --chromium",
        })
    }
}

/// Finds `program`: a path, or a name that is looked for on the PATH and in the places where systems keep programs for
/// administrators.
pub fn found(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let path: OsString = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// A folder for the files of experiments, which goes when it is dropped.
///
/// # Errors
/// It cannot be made.
pub fn folder() -> Result<tempfile::TempDir, LiveError> {
    tempfile::Builder::new().prefix("hvq-live-").tempdir().map_err(cannot("make a folder for experiments"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        let sh = found(Path::new("sh")).unwrap();
        assert!(sh.is_absolute() && found(&sh) == Some(sh.clone()));
        assert_eq!(found(Path::new("no-such-program-anywhere")), None);
        assert_eq!(found(Path::new("/no/such/program")), None);
    }
}
