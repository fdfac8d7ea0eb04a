//! Changes of the system that outlive the process, with their undoing. Devices are no part of them: they end with the process,
//! and their addresses, routes and name servers of systemd-resolved with them.

use super::netlink::Rule;
use super::resolver::ResolverFile;
use hvq_emulation::tun::tool;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

/// A change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Change {
    /// A rule of the routing policy.
    Rule(Rule),
    /// A table of nftables of this name, which is made by this script.
    Firewall { table: String, script: String },
    /// A setting of the kernel.
    Setting(Setting),
    /// The file of name servers.
    Resolver(ResolverFile),
}

/// A setting of the kernel, such as `net/ipv4/ip_forward`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) before: String,
    pub(super) after: String,
}

impl Setting {
    /// The change of setting `name` to `after`; `None` if that is its value, or if this system has no such setting.
    pub(super) fn to(name: &str, after: &str) -> Option<Self> {
        let before = fs::read_to_string(place(name)).ok()?.trim().to_owned();
        (before != after).then(|| Self { name: name.to_owned(), before, after: after.to_owned() })
    }
}

fn place(setting: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(setting)
}

impl Change {
    /// Makes the change.
    ///
    /// # Errors
    /// The system refuses, or what is to be made exists, so that it is somebody else's ([`io::ErrorKind::AlreadyExists`]).
    pub(super) fn apply(&self) -> io::Result<()> {
        match self {
            Self::Rule(rule) => rule.add(),
            Self::Firewall { table, script } => {
                if firewall(&format!("list table inet {table}\n")).is_ok() {
                    let text = format!("there is a table {table} of nftables already");
                    return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
                }
                firewall(script)
            }
            Self::Setting(setting) => fs::write(place(&setting.name), &setting.after),
            Self::Resolver(file) => file.apply(),
        }
    }

    /// Returns true if the change survives a restart of the system.
    pub(super) const fn is_lasting(&self) -> bool {
        matches!(self, Self::Resolver(_))
    }

    /// Undoes the change, as far as it was made and nobody has changed the same since. Again does no harm.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn undo(&self) -> io::Result<()> {
        match self {
            Self::Rule(rule) => rule.remove(),
            // Without nftables there is no table of it.
            Self::Firewall { table, .. } => match firewall(&format!("list table inet {table}\n")) {
                Ok(()) => firewall(&format!("delete table inet {table}\n")),
                Err(_) => Ok(()),
            },
            Self::Setting(setting) => match fs::read_to_string(place(&setting.name)) {
                Ok(now) if now.trim() == setting.after => fs::write(place(&setting.name), &setting.before),
                _ => Ok(()),
            },
            Self::Resolver(file) => file.undo(),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => rule.fmt(f),
            Self::Firewall { script, .. } => {
                let lines = script.lines().map(|line| format!("nft {line}")).collect::<Vec<_>>();
                f.write_str(&lines.join("\n"))
            }
            Self::Setting(setting) => {
                write!(f, "sysctl {}={}", setting.name.replace('/', "."), setting.after)
            }
            Self::Resolver(file) => file.fmt(f),
        }
    }
}

/// Has `nft` read `script`: all of it takes effect, or nothing.
pub(super) fn firewall(script: &str) -> io::Result<()> {
    tool::feed(("nft", "nftables"), &["-f", "-"], script)
}
