//! Addresses and routes in namespaces, by the `ip` command.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::tun::namespace::Namespace;
use crate::tun::tool;

/// The addresses of one end of a pair of devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// IPv4, in a network of 24 bits.
    pub v4: Ipv4Addr,
    /// IPv6, in a network of 64 bits.
    pub v6: Ipv6Addr,
}

impl End {
    /// The near end of pair `index`, where commands run: 100.64.`index`.2 (RFC 6598) and an address of the same kind from
    /// the block for one's own networks (RFC 4193).
    pub const fn near(index: u8) -> Self {
        Self::number(index, 2)
    }

    /// The far end of pair `index`.
    pub const fn far(index: u8) -> Self {
        Self::number(index, 1)
    }

    const fn number(index: u8, host: u8) -> Self {
        Self {
            v4: Ipv4Addr::new(100, 64, index, host),
            v6: Ipv6Addr::new(0xfd68, 0x7671, 0, index as u16, 0, 0, 0, host as u16),
        }
    }
}

/// The lines for `ip -batch` that give `device` the addresses of `end`.
pub fn addresses(device: &str, end: End, mtu: u16) -> Vec<String> {
    let End { v4, v6 } = end;
    vec![
        format!("link set {device} mtu {mtu} txqueuelen 4096 up"),
        format!("address add {v4}/24 dev {device}"),
        // Nobody else can have it, so that nobody need be asked (RFC 4862 §5.4).
        format!("address add {v6}/64 dev {device} nodad"),
    ]
}

/// The line that brings the loopback device up.
pub fn loopback() -> String {
    "link set lo up".to_owned()
}

/// The lines that send all to `gateway` through `device`.
pub fn default_routes(device: &str, gateway: End) -> Vec<String> {
    let End { v4, v6 } = gateway;
    vec![
        format!("route add default via {v4} dev {device}"),
        format!("-6 route add default via {v6} dev {device}"),
    ]
}

/// Runs the lines in `namespace`.
///
/// # Errors
/// The `ip` command is not there, or refuses a line, which the error shows.
pub fn apply(namespace: &Namespace, lines: &[String]) -> io::Result<()> {
    namespace.within(|| run(lines))?
}

fn run(lines: &[String]) -> io::Result<()> {
    let (plain, other): (Vec<&String>, Vec<&String>) =
        lines.iter().partition(|line| !line.starts_with("-6 "));
    batch(&[], &plain.iter().map(|line| line.as_str()).collect::<Vec<_>>())?;
    let six: Vec<&str> = other.iter().map(|line| line.trim_start_matches("-6 ")).collect();
    if six.is_empty() { Ok(()) } else { batch(&["-6"], &six) }
}

fn batch(options: &[&str], lines: &[&str]) -> io::Result<()> {
    let arguments = [options, &["-batch", "-"]].concat();
    tool::feed(("ip", "iproute2"), &arguments, &(lines.join("\n") + "\n"))
}

/// The lines by which what leaves from the near address of pair `index` leaves through `device`, wherever it goes.
pub fn source_routes(device: &str, index: u8) -> Vec<String> {
    let (End { v4, .. }, End { v4: gateway, .. }) = (End::near(index), End::far(index));
    let table = 100 + u32::from(index);
    vec![
        format!("rule add from {v4} table {table}"),
        format!("route add default via {gateway} dev {device} table {table}"),
    ]
}

/// The line that lets MPTCP add subflows from `device`, the near end of pair `index`.
pub fn subflow(device: &str, index: u8) -> String {
    format!("mptcp endpoint add {} dev {device} subflow", End::near(index).v4)
}

/// The lines that give TCP connections through `device` the congestion controller `name`, at the end `end` and, if there is
/// one, by the default routes through `gateway`. It is a property of routes, because namespaces may not choose one that the
/// system keeps for itself as their default.
pub fn congestion(device: &str, end: End, gateway: Option<End>, name: &str) -> Vec<String> {
    let [a, b, c, _] = end.v4.octets();
    let [w, x, y, z, ..] = end.v6.segments();
    let mut lines = vec![
        format!(
            "route replace {a}.{b}.{c}.0/24 dev {device} proto kernel scope link src {} congctl {name}",
            end.v4
        ),
        format!(
            "-6 route replace {w:x}:{x:x}:{y:x}:{z:x}::/64 dev {device} proto kernel metric 256 congctl {name}"
        ),
    ];
    let through = |End { v4, v6 }: End| {
        [
            format!("route replace default via {v4} dev {device} congctl {name}"),
            format!("-6 route replace default via {v6} dev {device} congctl {name}"),
        ]
    };
    // The second pair has no default route of its own.
    lines.extend(gateway.filter(|gateway| *gateway == End::far(0)).map(through).into_iter().flatten());
    lines
}

/// The line that lets MPTCP have as many subflows as devices.
pub fn subflow_limits() -> String {
    "mptcp limits set subflows 4 add_addr_accepted 4".to_owned()
}
