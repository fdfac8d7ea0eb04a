//! The changes that a client makes to its system. Nothing is looked up or done here.
//!
//! Routes of a tunnel that takes everything, or that some packets do not take, stand in a routing table of their own, which rules
//! lead to:
//!
//! | priority | packets | table |
//! |---|---|---|
//! | 5200 | UDP to the server | main |
//! | 5201 | to excluded networks | main |
//! | 5202 | of ports and programs that go past the tunnel | main |
//! | 5203 | all | main, but for its default routes |
//! | 5204 | all, or those of `only` | that of the tunnel |
//!
//! The server is told by address and port, and not by a mark of its packets: so the rule holds for every path, whatever links come
//! and go, and for no other traffic to the same host.

use super::change::{Change, Setting};
use super::file::{ClientSettings, ControlGroup, KillSwitch, Port, Split};
use super::netlink::{MAIN, Rule, Selector, Version};
use crate::prefix::Prefix;
use std::fmt::Write as _;
use std::net::SocketAddr;

const SERVER: u32 = 5200;
const EXCLUDED: u32 = 5201;
const BYPASS: u32 = 5202;
const SPECIFIC: u32 = 5203;
const TUNNEL: u32 = 5204;
/// The difference between the marks of programs that go past the tunnel and of those that go through.
const PAST: u32 = 1 << 16;

/// The facts that a plan is made of, beside the settings.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// The addresses of the server.
    pub(super) servers: Vec<SocketAddr>,
    /// The networks that are reached through the tunnel, those of hosts among them.
    pub(super) networks: Vec<Prefix>,
}

impl Facts {
    fn takes_everything(&self) -> bool {
        self.networks.iter().any(|network| network.bits() == 0)
    }

    /// Returns the table of the routes of the tunnel.
    pub(super) fn table(&self, client: &ClientSettings) -> u32 {
        let is_plain = client.exclude.is_empty() && client.bypass.is_empty() && client.only.is_empty();
        if is_plain && !self.takes_everything() { MAIN } else { client.table }
    }
}

/// The changes before the tunnel is asked for: after a failure nothing has left that should not.
pub(super) fn guard(client: &ClientSettings, facts: &Facts) -> Vec<Change> {
    let is_needed = client.kill_switch == KillSwitch::On || !programs(client).is_empty();
    let table = format!("hvq_{}", client.device.replace(['-', '.'], "_"));
    let firewall = is_needed.then(|| Change::Firewall { script: script(&table, client, facts), table });
    firewall.into_iter().collect()
}

/// The changes once there are addresses and a device.
pub(super) fn routing(client: &ClientSettings, facts: &Facts) -> Vec<Change> {
    let mut changes = Vec::new();
    // Answers to packets with a mark come by the ways of packets with that mark.
    if !programs(client).is_empty() {
        let setting = Setting::to("net/ipv4/conf/all/src_valid_mark", "1");
        changes.extend(setting.map(Change::Setting));
    }
    let mut rule = |version, priority, selector, table, specific| {
        changes.push(Change::Rule(Rule { version, priority, selector, table, specific }));
    };
    for peer in &facts.servers {
        rule(Version::of(peer.ip()), SERVER, Selector::Peer(*peer), MAIN, false);
    }
    let own = facts.table(client);
    if own == MAIN {
        return changes;
    }
    for network in &client.exclude {
        let selector = Selector::Network(network.to_string());
        rule(Version::of(network.address()), EXCLUDED, selector, MAIN, false);
    }
    for version in Version::ALL {
        for selector in selectors(&client.bypass, client.table | PAST) {
            rule(version, BYPASS, selector, MAIN, false);
        }
        rule(version, SPECIFIC, Selector::All, MAIN, true);
        if client.only.is_empty() {
            rule(version, TUNNEL, Selector::All, own, false);
        }
        for selector in selectors(&client.only, client.table) {
            rule(version, TUNNEL, selector, own, false);
        }
    }
    changes
}

fn selectors(split: &Split, mark: u32) -> impl Iterator<Item = Selector> + '_ {
    let ports = split.ports.iter().map(|Port(protocol, port)| Selector::Port(*protocol, *port));
    ports.chain((!split.programs.is_empty()).then_some(Selector::Mark(mark)))
}

/// The control groups of programs that are told apart, with their marks.
fn programs(client: &ClientSettings) -> Vec<(&ControlGroup, u32)> {
    let through = client.only.programs.iter().map(|group| (group, client.table));
    let past = client.bypass.programs.iter().map(|group| (group, client.table | PAST));
    through.chain(past).collect()
}

/// The script that makes the table of nftables.
fn script(table: &str, client: &ClientSettings, facts: &Facts) -> String {
    let mut script = format!("create table inet {table}\n");
    let device = &client.device;
    let programs = programs(client);
    if !programs.is_empty() {
        let chain = |name: &str, kind: &str| {
            format!("add chain inet {table} {name} {{ type {kind}; policy accept; }}\n")
        };
        script += &chain("sort", "route hook output priority mangle");
        script += &chain("answers", "filter hook prerouting priority mangle");
        script += &chain("addresses", "nat hook postrouting priority srcnat");
        for (ControlGroup(path), mark) in &programs {
            let level = path.split('/').count();
            let _whole = writeln!(
                script,
                "add rule inet {table} sort socket cgroupv2 level {level} \"{path}\" meta mark set {mark:#x} ct mark set {mark:#x}"
            );
        }
        // A program may have chosen its source address before its packets were marked.
        for mark in [client.table, client.table | PAST] {
            let way = if mark == client.table { "==" } else { "!=" };
            let _whole = writeln!(
                script,
                "add rule inet {table} answers ct mark {mark:#x} meta mark set {mark:#x}\n\
                 add rule inet {table} addresses meta mark {mark:#x} oifname {way} \"{device}\" oifname != \"lo\" masquerade"
            );
        }
    }
    if client.kill_switch == KillSwitch::On {
        kill_switch(&mut script, table, client, facts);
    }
    script
}

/// The rules that reject what should go through the tunnel and does not: from this machine, and from those that it forwards for.
fn kill_switch(script: &mut String, table: &str, client: &ClientSettings, facts: &Facts) {
    let mut rules = vec!["oifname \"lo\" accept".to_owned(), format!("oifname \"{}\" accept", client.device)];
    for peer in &facts.servers {
        rules.push(format!("{}udp dport {} accept", toward(Prefix::only(peer.ip())), peer.port()));
    }
    rules.extend(client.exclude.iter().map(|network| format!("{}accept", toward(*network))));
    rules.extend(matches(&client.bypass, client.table | PAST).map(|past| format!("{past}accept")));
    // A link gets its address by DHCP, and finds its neighbours.
    rules.push("udp sport 68 udp dport 67 accept".to_owned());
    rules.push("udp sport 546 udp dport 547 accept".to_owned());
    rules
        .push("icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit } accept".to_owned());
    let networks = facts.networks.iter().map(|network| toward(*network));
    for network in if facts.takes_everything() { vec![String::new()] } else { networks.collect() } {
        if client.only.is_empty() {
            rules.push(format!("{network}reject"));
        }
        rules.extend(matches(&client.only, client.table).map(|only| format!("{network}{only}reject")));
    }
    for (chain, hook) in [("leave", "output"), ("pass", "forward")] {
        let _whole = writeln!(
            script,
            "add chain inet {table} {chain} {{ type filter hook {hook} priority filter; policy accept; }}"
        );
        for rule in &rules {
            let _whole = writeln!(script, "add rule inet {table} {chain} {rule}");
        }
    }
}

/// The match of packets to `network`.
fn toward(network: Prefix) -> String {
    let version = if network.address().is_ipv4() { "ip" } else { "ip6" };
    format!("{version} daddr {network} ")
}

/// The matches of packets of the ports and programs of `split`, which have this mark.
fn matches(split: &Split, mark: u32) -> impl Iterator<Item = String> + '_ {
    selectors(split, mark).filter_map(|selector| match selector {
        Selector::Port(protocol, port) => Some(format!("{} dport {port} ", protocol.name())),
        Selector::Mark(mark) => Some(format!("meta mark {mark:#x} ")),
        _ => None,
    })
}
