//! The folder of control sockets.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::PathBuf;

/// The bits of a mode by which others than the owner get in.
const OTHERS: u32 = 0o077;

/// The folder in which programs of this user have their control sockets; it need not exist.
pub fn folder() -> PathBuf {
    if let Some(runtime) = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)
        && runtime.is_absolute()
    {
        return runtime.join("hvq");
    }
    match rustix::process::geteuid().as_raw() {
        0 => PathBuf::from("/run/hvq"),
        user => std::env::temp_dir().join(format!("hvq-{user}")),
    }
}

/// The folder, made if need be: others can neither enter it nor have put it there.
pub(super) fn own() -> io::Result<PathBuf> {
    let folder = folder();
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = folder.symlink_metadata()?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() || found.mode() & OTHERS != 0 {
        let text = format!("{} is no folder that this user alone can enter", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(folder)
}
