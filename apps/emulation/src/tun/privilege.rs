//! The privileges that make namespaces and devices: root, or a user namespace.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{getgid, getppid, getuid};
use serde::{Deserialize, Serialize};

/// The capabilities to administer the system (for namespaces and mounts) and its networks, by number.
const NEEDED: u64 = (1 << 21) | (1 << 12);

/// The privilege by which namespaces are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Privilege {
    /// This process had the capabilities already.
    Own,
    /// It has them within a user namespace; programs are run as the user that it was.
    User(User),
}

/// Somebody without privileges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct User {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// The error of a user without the privilege.
#[derive(Debug, thiserror::Error)]
#[error(
    "{what}: {source}. Run it as root, or let users make namespaces: sysctl user.max_user_namespaces must not be 0, \
     kernel.unprivileged_userns_clone (Debian) must be 1 and kernel.apparmor_restrict_unprivileged_userns (Ubuntu) 0; \
     /dev/net/tun must be open to them (chmod 666); in a container, --cap-add SYS_ADMIN --cap-add NET_ADMIN \
     --device /dev/net/tun"
)]
pub struct NoPrivilege {
    what: &'static str,
    source: io::Error,
}

/// Gets what it takes, in a user namespace if need be. To be called before any thread starts: a process with several
/// threads cannot change its user namespace.
///
/// # Errors
/// The system does not let users make namespaces or TUN devices; the error says what would help.
pub fn acquire() -> Result<Privilege, NoPrivilege> {
    let refused = |what: &'static str| move |source: io::Error| NoPrivilege { what, source };
    let tun = fs::File::options().read(true).write(true).open("/dev/net/tun");
    tun.map_err(refused("/dev/net/tun cannot be opened"))?;
    if capabilities().map_err(refused("/proc cannot be read"))? & NEEDED == NEEDED {
        return Ok(Privilege::Own);
    }
    let user = User { uid: getuid().as_raw(), gid: getgid().as_raw() };
    let failed = refused("no user namespace can be made");
    unshare(CloneFlags::CLONE_NEWUSER).map_err(io::Error::from).map_err(&failed)?;
    become_root(user).map_err(&failed)?;
    // Some systems let users make the namespace, but give them nothing in it.
    let granted = crate::tun::namespace::Namespace::new();
    granted.map_err(refused("no network namespace can be made"))?;
    Ok(Privilege::User(user))
}

/// Lets the kernel kill this process when `parent` ends, which must be the one that started it. A change of user, as
/// [`acquire`] may be, undoes it.
///
/// # Errors
/// Another process started this one, or it is gone already.
pub fn end_with(parent: u32) -> io::Result<()> {
    set_pdeathsig(Signal::SIGKILL)?;
    if u32::try_from(getppid().as_raw()) == Ok(parent) {
        return Ok(());
    }
    Err(io::Error::other(format!("process {parent} did not start this one, or has ended")))
}

/// Calls `user`, as it is outside of this new user namespace, root inside (user_namespaces(7)).
fn become_root(user: User) -> io::Result<()> {
    map(user, User { uid: 0, gid: 0 })
}

/// Calls root, as it is outside of this new user namespace, `user` inside.
pub(crate) fn become_user(user: User) -> io::Result<()> {
    map(User { uid: 0, gid: 0 }, user)
}

fn map(outside: User, inside: User) -> io::Result<()> {
    // Without this the groups of users without privileges could be dropped, and with them what groups are denied.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{} {} 1", inside.uid, outside.uid))?;
    fs::write("/proc/self/gid_map", format!("{} {} 1", inside.gid, outside.gid))
}

/// The effective capabilities of this process.
fn capabilities() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no CapEff in /proc/self/status"))
}
