//! The name servers of this machine: those of a device, where systemd-resolved runs, or the file `/etc/resolv.conf`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The file of name servers.
const FILE: &str = "/etc/resolv.conf";
/// The folder of systemd-resolved while it runs.
const RESOLVED: &str = "/run/systemd/resolve";

/// The file of name servers as it was, and as it is to be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct ResolverFile {
    path: PathBuf,
    before: Before,
    after: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Before {
    Missing,
    File { bytes: Vec<u8>, mode: u32 },
    Link(PathBuf),
}

impl ResolverFile {
    /// The change of the file to `servers` and the domains `search`, for the device called `device`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn to(device: &str, servers: &[IpAddr], search: &[String]) -> io::Result<Self> {
        Self::at(Path::new(FILE), device, servers, search)
    }

    fn at(path: &Path, device: &str, servers: &[IpAddr], search: &[String]) -> io::Result<Self> {
        let before = match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Before::Missing,
            Err(error) => return Err(error),
            Ok(found) if found.is_symlink() => Before::Link(path.read_link()?),
            Ok(found) => Before::File { bytes: fs::read(path)?, mode: found.permissions().mode() & 0o7777 },
        };
        let mut after =
            format!("# Written by hvq up for the tunnel {device}, which puts the former file back.\n");
        servers.iter().for_each(|server| after += &format!("nameserver {server}\n"));
        if !search.is_empty() {
            after += &format!("search {}\n", search.join(" "));
        }
        Ok(Self { path: path.to_owned(), before, after })
    }

    /// Writes the file.
    pub(super) fn apply(&self) -> io::Result<()> {
        self.put(self.after.as_bytes(), 0o644)
    }

    /// Puts back what was there, if the file is still the one that was written.
    pub(super) fn undo(&self) -> io::Result<()> {
        let is_ours = self.path.symlink_metadata().is_ok_and(|found| found.is_file())
            && fs::read(&self.path).is_ok_and(|now| now == self.after.as_bytes());
        if !is_ours {
            return Ok(());
        }
        match &self.before {
            Before::Missing => fs::remove_file(&self.path),
            Before::File { bytes, mode } => self.put(bytes, *mode),
            Before::Link(target) => {
                let aside = self.aside();
                let _left = fs::remove_file(&aside);
                symlink(target, &aside)?;
                fs::rename(&aside, &self.path)
            }
        }
    }

    fn aside(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".hvq-new");
        name.into()
    }

    /// Has the file say `bytes`, all at once; in place if something is mounted there, as in containers.
    fn put(&self, bytes: &[u8], mode: u32) -> io::Result<()> {
        let aside = self.aside();
        let _left = fs::remove_file(&aside);
        let made = OpenOptions::new().write(true).create_new(true).mode(mode).open(&aside);
        let renamed = made.and_then(|mut file| {
            file.write_all(bytes)?;
            file.set_permissions(fs::Permissions::from_mode(mode))?;
            file.sync_all()?;
            fs::rename(&aside, &self.path)
        });
        renamed.or_else(|_| {
            let _left = fs::remove_file(&aside);
            fs::write(&self.path, bytes)
        })
    }
}

impl fmt::Display for ResolverFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<&str> = self.after.lines().filter(|line| !line.starts_with('#')).collect();
        write!(f, "{}: {}", self.path.display(), lines.join(", "))
    }
}

/// Returns true if systemd-resolved answers for name servers.
pub(super) fn is_resolved_there() -> bool {
    Path::new(RESOLVED).is_dir() && resolvectl(&["status".to_owned()]).is_ok()
}

/// The arguments of `resolvectl` by which all names are asked of `servers` through `device`, until that is gone.
pub(super) fn of_device(device: &str, servers: &[IpAddr], search: &[String]) -> [Vec<String>; 2] {
    let words = |first: &str| vec![first.to_owned(), device.to_owned()];
    let (mut dns, mut domain) = (words("dns"), words("domain"));
    dns.extend(servers.iter().map(ToString::to_string));
    domain.extend(search.iter().cloned());
    domain.push("~.".to_owned());
    [dns, domain]
}

/// Runs `resolvectl`.
pub(super) fn resolvectl(arguments: &[String]) -> io::Result<()> {
    let mut command = Command::new("resolvectl");
    let output = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("resolvectl: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &Path) -> ResolverFile {
        let servers = ["10.0.0.53".parse().unwrap(), "fd00::53".parse().unwrap()];
        ResolverFile::at(path, "hvq0", &servers, &["corp.example".to_owned()]).unwrap()
    }

    #[test]
    fn a_file_a_link_and_nothing_are_put_back_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, none] = ["file", "link", "none"].map(|name| folder.path().join(name));
        fs::write(&file, "nameserver 192.0.2.1\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o604)).unwrap();
        symlink("stub.conf", &link).unwrap();
        for path in [&file, &link, &none] {
            let change = change(path);
            change.apply().unwrap();
            let said = fs::read_to_string(path).unwrap();
            assert!(
                said.ends_with("nameserver 10.0.0.53\nnameserver fd00::53\nsearch corp.example\n"),
                "{said}"
            );
            change.undo().unwrap();
            change.undo().unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "nameserver 192.0.2.1\n");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o604);
        assert_eq!(link.read_link().unwrap(), Path::new("stub.conf"));
        assert!(none.symlink_metadata().is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside them");
    }

    #[test]
    fn what_somebody_else_wrote_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("resolv.conf");
        fs::write(&path, "nameserver 192.0.2.1\n").unwrap();
        let change = change(&path);
        // Killed before it was made, and overtaken after it was.
        change.undo().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "nameserver 192.0.2.1\n");
        change.apply().unwrap();
        fs::write(&path, "nameserver 192.0.2.2\n").unwrap();
        change.undo().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "nameserver 192.0.2.2\n");
    }

    #[test]
    fn systemd_resolved_is_told_to_ask_all_names_through_the_device() {
        let [dns, domain] = of_device("hvq0", &["10.0.0.53".parse().unwrap()], &["corp.example".to_owned()]);
        assert_eq!(dns, ["dns", "hvq0", "10.0.0.53"]);
        assert_eq!(domain, ["domain", "hvq0", "corp.example", "~."]);
    }
}
