//! A server: its device, forwarding and translation of addresses, and the accounts of its users.

use super::change::{Change, Setting};
use super::file::{Nat, ServerSettings};
use super::journal::{self, Journal};
use super::{apply, netlink};
use crate::server::{Destinations, Ledger, UserQuota};
use crate::{AsyncDevice, MTU, Server, ServerOptions};
use hvq::{EarlyData, ServerConfig};
use hvq_emulation::tun::device::TunDevice;
use hvq_emulation::tun::namespace::Namespace;
use hvq_emulation::tun::wiring::{self, End};
use hvq_program::failure::{Exit, Failure, OrFail};
use hvq_program::listen::{self, SocketFacts};
use hvq_program::output::{Console, ResultFormat, print};
use hvq_program::tls::{self, Secrecy};
use hvq_program::transport;
use serde_json::json;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// The interval at which accounts are written to the disk: so much is forgotten if the server is killed.
const KEEP: Duration = Duration::from_secs(1);
/// Bytes of a TCP flow that wait in its stream at least.
const SEND_BUFFER: usize = 512 << 10;

/// The changes that a server makes to its system.
pub(super) fn changes(server: &ServerSettings) -> Vec<Change> {
    let mut changes = Vec::new();
    let forwarding =
        ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"].map(|name| Setting::to(name, "1"));
    let table = format!("hvq_{}", server.device.replace(['-', '.'], "_"));
    let (v4, v6) = (forwarding[0].is_some(), forwarding[1].is_some());
    changes.push(Change::Firewall { script: script(&table, server, (v4, v6)), table });
    if v6 {
        // A machine that forwards takes its own routes from routers only if it is told so twice.
        let devices = fs::read_dir("/proc/sys/net/ipv6/conf").into_iter().flatten().flatten();
        let mut names: Vec<String> =
            devices.filter_map(|device| device.file_name().into_string().ok()).collect();
        names.sort();
        for device in names {
            let name = format!("net/ipv6/conf/{device}/accept_ra");
            let changed = Setting::to(&name, "2").filter(|setting| setting.before == "1");
            changes.extend(changed.map(Change::Setting));
        }
    }
    changes.extend(forwarding.into_iter().flatten().map(Change::Setting));
    changes
}

/// The script of nftables: translation of addresses, and no forwarding between other links where there was none before, by version
/// of IP.
fn script(table: &str, server: &ServerSettings, (v4, v6): (bool, bool)) -> String {
    let (device, network) = (&server.device, End::far(server.network));
    let mut script = format!("create table inet {table}\n");
    if server.nat == Nat::On {
        script += &format!(
            "add chain inet {table} addresses {{ type nat hook postrouting priority srcnat; policy accept; }}\n\
             add rule inet {table} addresses ip saddr {}/24 oifname != \"{device}\" masquerade\n\
             add rule inet {table} addresses ip6 saddr {}/64 oifname != \"{device}\" masquerade\n",
            network.v4, network.v6
        );
    }
    script += &format!(
        "add chain inet {table} pass {{ type filter hook forward priority filter; policy accept; }}\n"
    );
    for (closed, protocol) in [(v4, "ipv4"), (v6, "ipv6")] {
        if closed {
            script += &format!(
                "add rule inet {table} pass meta nfproto {protocol} iifname != \"{device}\" oifname != \"{device}\" drop\n"
            );
        }
    }
    script
}

/// The lines about the device, for people.
pub(super) fn told(server: &ServerSettings) -> Vec<String> {
    let mut lines = vec![format!("ip tuntap add {} mode tun", server.device)];
    let commands = wiring::addresses(&server.device, End::far(server.network), MTU);
    lines.extend(commands.iter().map(|line| format!("ip {line}")));
    lines
}

/// Serves tunnels; changes of the system are in `journal`, which the caller undoes. `destinations` says which addresses clients may
/// reach, beside the routes.
///
/// # Errors
/// The system refuses a change, an address cannot be listened on, or the device is gone.
pub(super) async fn run(
    server: &ServerSettings,
    journal: &mut Journal,
    destinations: Destinations,
    (format, console): (ResultFormat, Console),
) -> Result<(), Failure> {
    let accounts = journal.beside("usage");
    let ledger = ledger(server, &accounts)?;
    let network = End::far(server.network);
    let tokens = server.users.iter().map(|user| user.token.0.clone()).collect();
    let options = ServerOptions::new(tokens, server.routes.clone(), (network.v4, network.v6))
        .map_err(|error| Failure::new(Exit::Usage, error.to_string()))?
        .with_tcp_lane(server.lane)
        .with_destinations(destinations)
        .with_ledger(Arc::clone(&ledger));
    if netlink::index(&server.device).is_some() {
        let text = format!("there is a device {} already", server.device);
        return Err(Failure::new(Exit::Runtime, text));
    }
    let tls = tls::server(server.identity.clone(), &Secrecy::default(), EarlyData::Off)?;
    let endpoint = listen::bind(&server.listen, &server.channels, |facts: SocketFacts| {
        let mut transport = transport::config(server.scheduler, server.congestion);
        transport.set_channels(facts.hints).streams_mut().send_buffer = SEND_BUFFER;
        ServerConfig::new(tls.clone(), Arc::new(transport))
    })?;
    apply(journal, changes(server))?;
    let here = Namespace::current()?;
    let device = TunDevice::offloading(&here, &server.device).or_fail(Exit::Runtime, || {
        format!("cannot make the device {} (this needs root, or the capability NET_ADMIN)", server.device)
    })?;
    let lines = wiring::addresses(&server.device, network, MTU);
    wiring::apply(&here, &lines).or_fail(Exit::Runtime, || "cannot set up the device".to_owned())?;
    let tunnels = Server::new(options, AsyncDevice::new(device)?);
    let addresses: Vec<String> = endpoint.local_addrs().iter().map(ToString::to_string).collect();
    match format {
        ResultFormat::Json => {
            let facts = json!({ "state": "up", "device": server.device, "listening": addresses });
            print(&facts.to_string())?;
        }
        ResultFormat::Text => {
            console.say(format!("tunnels on {} (UDP) come out of {}", addresses.join(", "), server.device));
        }
    }
    let keeper = Keeper { ledger, path: &accounts };
    tokio::select! {
        ended = tunnels.run(&endpoint) => ended.or_fail(Exit::Runtime, || "the device is gone".to_owned()),
        kept = keeper.keep() => kept.or_fail(Exit::Runtime, || format!("cannot write {}", accounts.display())),
    }
}

/// The accounts of the users, as they were when the server ended.
fn ledger(server: &ServerSettings, path: &Path) -> Result<Arc<Ledger>, Failure> {
    let users = server.users.iter();
    let users = users.map(|user| UserQuota { name: user.name.clone(), quota: user.quota });
    let ledger = Ledger::new(users.collect());
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ledger),
        Err(error) => return Err(error).or_fail(Exit::Runtime, || format!("cannot read {}", path.display())),
    };
    // Beginning anew would give every quota a second time.
    ledger.restore(&text).or_fail(Exit::Runtime, || format!("{} holds no accounts", path.display()))?;
    Ok(ledger)
}

/// Keeps accounts on the disk, for as long as it lives and a last time when it is dropped.
struct Keeper<'a> {
    ledger: Arc<Ledger>,
    path: &'a Path,
}

impl Keeper<'_> {
    /// Writes the accounts each time that they have changed.
    ///
    /// # Errors
    /// The disk refuses: quotas would last no longer than the server.
    async fn keep(&self) -> io::Result<()> {
        let mut written = String::new();
        loop {
            let text = self.ledger.text();
            if text != written {
                journal::put(self.path, text.as_bytes())?;
                written = text;
            }
            sleep(KEEP).await;
        }
    }
}

impl Drop for Keeper<'_> {
    fn drop(&mut self) {
        if let Err(error) = journal::put(self.path, self.ledger.text().as_bytes()) {
            tracing::error!(%error, "the accounts of the last second are lost");
        }
    }
}
