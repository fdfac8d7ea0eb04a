//! Two namespaces and two pairs of interfaces between them, which can be changed.

use super::event::{Change, Line, Step};
use crate::error::{LiveError, cannot};
use hvq_emulation::tun::namespace::Namespace;
use hvq_emulation::tun::program::Launcher;
use hvq_emulation::tun::shell::{NamespacePair, Plan, Route};
use hvq_emulation::tun::wiring;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;

/// An address of the hardware that no interface has (locally administered, IEEE 802).
const NOBODY: &str = "02:00:00:00:00:99";
/// The address of the far end that both channels lead to.
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
/// The rate of a link that is limited.
const RATE: &str = "20mbit";
/// A hundredth of it.
const CREEP: &str = "200kbit";
/// The largest packet.
const MTU: u16 = 1_500;

/// The network of one try.
#[derive(Debug)]
pub(crate) struct Network {
    namespaces: NamespacePair,
}

impl Line {
    /// Both, the first path first.
    pub(crate) const ALL: [Self; 2] = [Self::Wifi, Self::Cell];

    /// The name of its interfaces at both ends.
    pub(crate) const fn device(self) -> &'static str {
        match self {
            Self::Wifi => "wifi",
            Self::Cell => "cell",
        }
    }

    const fn address(self, host: u8) -> Ipv4Addr {
        match self {
            Self::Wifi => Ipv4Addr::new(10, 1, 0, host),
            Self::Cell => Ipv4Addr::new(10, 2, 0, host),
        }
    }

    /// The address of the near end.
    pub(crate) const fn near(self) -> Ipv4Addr {
        self.address(2)
    }

    /// The address that the near end gets in place of its own.
    const fn other(self) -> Ipv4Addr {
        self.address(3)
    }

    /// The address of the far end.
    pub(crate) const fn far(self) -> Ipv4Addr {
        self.address(1)
    }

    /// The line of `ip -batch` that leads from the near end to [`SERVER`], as a DHCP client adds one when a link comes up.
    fn route(self) -> String {
        let metric = match self {
            Self::Wifi => 100,
            Self::Cell => 200,
        };
        format!("route replace {SERVER} via {} dev {} metric {metric}", self.far(), self.device())
    }
}

impl Network {
    /// Namespaces with both channels.
    ///
    /// # Errors
    /// The system does not permit it, or there is no `ip` command.
    pub(crate) fn new(launcher: &Launcher) -> Result<Self, LiveError> {
        let plan = Plan {
            route: Route::Direct(Box::default()),
            seed: 1,
            mtu: MTU,
            congestion: None,
            log: None,
            resolvers: Vec::new(),
            user: None,
            launcher: launcher.clone(),
        };
        let namespaces = NamespacePair::new(&plan)
            .map_err(|error| cannot("make namespaces")(std::io::Error::other(error)))?;
        let network = Self { namespaces };
        for namespace in [network.namespaces.near(), network.namespaces.far()] {
            set(namespace, &[wiring::loopback()])?;
        }
        set(network.namespaces.far(), &[format!("address add {SERVER}/32 dev lo")])?;
        Line::ALL.into_iter().try_for_each(|line| network.make(line))?;
        Ok(network)
    }

    /// The namespaces.
    pub(crate) const fn namespaces(&self) -> &NamespacePair {
        &self.namespaces
    }

    /// Does what `step` says, now.
    ///
    /// # Errors
    /// `ip` refuses it.
    pub(crate) fn apply(&self, step: Step) -> Result<(), LiveError> {
        let (near, far) = (self.namespaces.near(), self.namespaces.far());
        let Step { line, change, .. } = step;
        let device = line.device();
        let deafen =
            |to: Ipv4Addr| format!("neighbour replace {to} dev {device} lladdr {NOBODY} nud permanent");
        match change {
            Change::Down => set(near, &[format!("link set {device} down")]),
            Change::Up => set(near, &[format!("link set {device} up"), line.route()]),
            Change::Remove => set(near, &[format!("link delete {device}")]),
            Change::Make => self.make(line),
            Change::Renumber => set(
                near,
                &[
                    format!("address add {}/24 dev {device}", line.other()),
                    format!("address delete {}/24 dev {device}", line.near()),
                    // The second address of a network goes with the first, unless the system promotes it.
                    format!("address replace {}/24 dev {device}", line.other()),
                    line.route(),
                ],
            ),
            Change::DropUpwards => set(near, &[deafen(line.far())]),
            Change::DropDownwards => set(far, &[deafen(line.near())]),
            Change::Slow => self.limit(line, CREEP),
            Change::Fast => self.limit(line, RATE),
            Change::Pass => {
                set(near, &[format!("neighbour flush dev {device} nud permanent")])?;
                set(far, &[format!("neighbour flush dev {device} nud permanent")])
            }
        }
    }

    /// Limits both directions of `line` to `rate`, behind a queue of 64 kB.
    fn limit(&self, line: Line, rate: &str) -> Result<(), LiveError> {
        let words = format!("qdisc replace dev {} root tbf rate {rate} burst 16kb limit 64kb", line.device());
        for namespace in [self.namespaces.near(), self.namespaces.far()] {
            let run = || Command::new("tc").args(words.split(' ')).output();
            let output = namespace.within(run).and_then(|output| output).map_err(cannot("limit a link"))?;
            if !output.status.success() {
                let says = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                return Err(LiveError::Program { program: "tc", says });
            }
        }
        Ok(())
    }

    /// Makes a pair of interfaces with their addresses.
    fn make(&self, line: Line) -> Result<(), LiveError> {
        let (near, far) = (self.namespaces.near(), self.namespaces.far());
        let device = line.device();
        // `ip` is a child of this process and sees its descriptors there.
        let place = format!("/proc/{}/fd/{}", std::process::id(), far.as_fd().as_raw_fd());
        set(near, &[format!("link add {device} type veth peer name {device} netns {place}")])?;
        for (namespace, address) in [(near, line.near()), (far, line.far())] {
            set(
                namespace,
                &[format!("address add {address}/24 dev {device}"), format!("link set {device} up")],
            )?;
        }
        set(near, &[line.route()])
    }
}

/// Runs lines of `ip -batch` in `namespace`.
fn set(namespace: &Namespace, lines: &[String]) -> Result<(), LiveError> {
    wiring::apply(namespace, lines).map_err(cannot("set up interfaces"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::net::{SocketAddr, UdpSocket};
    use std::time::Duration;

    /// Datagrams that are tried: the first may be gone before addresses are resolved, or late on a machine that is busy.
    const TRIES: usize = 4;

    /// Returns true if a datagram from `from` in one namespace gets to `to` in the other.
    fn arrives(from: (&Namespace, Ipv4Addr), to: (&Namespace, Ipv4Addr)) -> bool {
        let bound = |address: Ipv4Addr| UdpSocket::bind(SocketAddr::from((address, 9)));
        let Ok(receiver) = to.0.within(|| bound(to.1)).expect("the namespace is there") else { return false };
        receiver.set_read_timeout(Some(Duration::from_millis(250))).expect("a timeout is set");
        (0..TRIES).any(|_| {
            let sent = from.0.within(|| bound(from.1)?.send_to(b"x", (to.1, 9)));
            sent.expect("the namespace is there").is_ok() && receiver.recv(&mut [0]).is_ok()
        })
    }

    /// Returns true for the datagrams of the near end, and for those of the far end, that arrive over `line`.
    fn passes(network: &Network, line: Line) -> (bool, bool) {
        let near = (network.namespaces.near(), line.near());
        let far = (network.namespaces.far(), line.far());
        (arrives(near, far), arrives(far, near))
    }

    #[test]
    fn changes_of_one_channel_stop_what_they_name_and_nothing_else() {
        let launcher = Launcher { program: "false".into(), words: Vec::new() };
        let network = match Network::new(&launcher) {
            Ok(network) => network,
            Err(error) => {
                eprintln!("SKIPPED: this test needs network namespaces and iproute2: {error}");
                return;
            }
        };
        let after = |change| -> io::Result<(bool, bool)> {
            let step = Step { at: Duration::ZERO, line: Line::Wifi, change };
            network.apply(step).map_err(io::Error::other)?;
            Ok(passes(&network, Line::Wifi))
        };
        assert_eq!(passes(&network, Line::Wifi), (true, true));
        for (change, wanted) in [
            (Change::DropUpwards, (false, true)),
            (Change::Pass, (true, true)),
            (Change::DropDownwards, (true, false)),
            (Change::Pass, (true, true)),
            (Change::Down, (false, false)),
            (Change::Up, (true, true)),
            (Change::Remove, (false, false)),
            (Change::Make, (true, true)),
            (Change::Renumber, (false, false)),
        ] {
            assert_eq!(after(change).expect("ip takes it"), wanted, "{change:?}");
        }
        let renumbered = (network.namespaces.near(), Line::Wifi.other());
        assert!(arrives(renumbered, (network.namespaces.far(), Line::Wifi.far())), "from the new address");
        assert_eq!(passes(&network, Line::Cell), (true, true));
    }
}
