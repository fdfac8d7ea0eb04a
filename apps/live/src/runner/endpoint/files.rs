//! Files to send and to keep, by the paths of requests.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use std::path::{Component, Path, PathBuf};

/// The file in `folder` that a request for `path` means: nothing outside of the folder.
///
/// # Errors
/// There can be no such file.
pub(crate) fn inside(folder: &Path, path: &str) -> Result<PathBuf> {
    let relative = Path::new(path.trim_start_matches('/'));
    let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    ensure!(plain && relative.file_name().is_some(), "{path:?} names no file");
    Ok(folder.join(relative))
}

/// The content of the file in `folder` that a request for `path` means.
///
/// # Errors
/// There is none.
pub(crate) async fn read(folder: &Path, path: &str) -> Result<Bytes> {
    let file = inside(folder, path)?;
    let content = tokio::fs::read(&file).await.with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Bytes::from(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_nowhere_but_into_the_folder() {
        let folder = Path::new("www");
        assert_eq!(inside(folder, "/a/b.txt").unwrap(), Path::new("www/a/b.txt"));
        assert_eq!(inside(folder, "//etc/passwd").unwrap(), Path::new("www/etc/passwd"));
        for path in ["/../secret", "/a/../../secret", "/", "", "/.."] {
            assert!(inside(folder, path).is_err(), "{path}");
        }
    }
}
