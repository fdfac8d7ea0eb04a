//! The clients that are tried: hvq in its forms, and its rivals.

use hvq_lab::names::by_name;
use hvq_scheduler::Policy;
use std::fmt;
use std::fs;
use std::str::FromStr;

/// The beginning of the names of Multipath TCP.
const MPTCP: &str = "mptcp-";

/// A client, with the server that goes with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contender {
    /// hvq, in this process.
    Library(Form),
    /// Another implementation, in a program of its own.
    Rival(Rival),
}

/// The form in which hvq takes part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Over both links, with this policy at both ends.
    Multipath(Policy),
    /// Without multipath: its one path moves to the other link.
    Migration,
}

/// Another implementation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rival {
    /// quinn, whose one path moves.
    Quinn,
    /// quiche, whose one path moves.
    Quiche,
    /// noq, over both links.
    Noq,
    /// Multipath TCP of the kernel with CUBIC.
    MptcpCubic,
    /// Multipath TCP of the kernel with BBR.
    MptcpBbr,
}

impl Rival {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Quinn, Self::Quiche, Self::Noq, Self::MptcpCubic, Self::MptcpBbr];

    /// The name that [`FromStr`] takes, and that the program of rivals knows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quinn => "quinn",
            Self::Quiche => "quiche",
            Self::Noq => "noq",
            Self::MptcpCubic => "mptcp-cubic",
            Self::MptcpBbr => "mptcp-bbr",
        }
    }

    /// The reason for which it cannot take part on this system; `None` if it can.
    pub fn obstacle(self) -> Option<String> {
        let congestion = self.name().strip_prefix(MPTCP)?;
        let read = |name: &str| fs::read_to_string(format!("/proc/sys/net/{name}")).unwrap_or_default();
        if read("mptcp/enabled").is_empty() {
            return Some("this kernel has no Multipath TCP".to_owned());
        }
        let known = read("ipv4/tcp_available_congestion_control");
        let is_known = known.split_whitespace().any(|name| name == congestion);
        (!is_known).then(|| format!("this kernel has no {congestion} for TCP, or has not loaded it"))
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(Form::Multipath(policy)) => policy.fmt(f),
            Self::Library(Form::Migration) => f.write_str("migration"),
            Self::Rival(rival) => f.write_str(rival.name()),
        }
    }
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "migration" {
            return Ok(Self::Library(Form::Migration));
        }
        let rival = by_name(text, "rival", &Rival::ALL, Rival::name).map(Self::Rival);
        let policy = || text.parse().map(|policy| Self::Library(Form::Multipath(policy)));
        let rivals = Rival::ALL.map(Rival::name).join(", ");
        rival.or_else(|_| {
            policy().map_err(|_| format!("{text:?} is neither a policy nor migration, {rivals}"))
        })
    }
}

impl Contender {
    /// Forms of hvq that are tried unless somebody names others.
    pub fn usual() -> Vec<Self> {
        let names = ["hvc", "min-rtt", "redundant", "dchannel", "migration"];
        names.iter().filter_map(|name| name.parse().ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_asked_for_by_the_names_that_they_have_in_tables() {
        for contender in Contender::usual().into_iter().chain(Rival::ALL.map(Contender::Rival)) {
            assert_eq!(contender.to_string().parse(), Ok(contender));
        }
        assert_eq!(Contender::usual().len(), 5);
        let says = "moon".parse::<Contender>().unwrap_err();
        assert!(says.contains("policy") && says.contains("mptcp-bbr"), "{says}");
    }
}
