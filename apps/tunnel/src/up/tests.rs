//! Files of clients, and the changes that come of them.

use super::file::{ClientSettings, End};
use super::plan::{self, Facts};
use super::*;
use crate::prefix::Prefix;
use std::fs;

/// A file of a client with these further lines.
fn read(lines: &str) -> Result<Settings, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let (file, token) = (folder.path().join("office.toml"), folder.path().join("token"));
    fs::write(&token, "a-token-of-some-length\n").unwrap();
    let server = "server = \"https://gateway.example:4433\"";
    fs::write(&file, format!("[client]\n{server}\ntoken_file = \"{}\"\n{lines}\n", token.display())).unwrap();
    Settings::read(&file)
}

fn client(lines: &str) -> ClientSettings {
    match read(lines).unwrap().end {
        End::Client(client) => *client,
        End::Server(_) => panic!("the table is that of a client"),
    }
}

fn facts(networks: &[&str]) -> Facts {
    let networks: Vec<Prefix> = networks.iter().map(|network| network.parse().unwrap()).collect();
    Facts { servers: vec!["192.0.2.9:4433".parse().unwrap()], networks }
}

fn lines(changes: &[change::Change]) -> String {
    changes.iter().map(|change| format!("{change}\n")).collect()
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_field() {
    for (line, problem) in [
        ("mtu = 1200", "office.toml:4: client.mtu: packets have 1280 to 1360 bytes"),
        ("device = \"a b\"", "office.toml:4: client.device: a device's name has"),
        ("dns = [\"here\"]", "office.toml:4: client.dns: "),
        ("\nroutes = [\"10.0.0.0/33\"]", "office.toml:5: client.routes: \"10.0.0.0/33\" is no route"),
        (
            "paths = [\"a=10.0.0.2\", \"a=10.1.0.2\"]",
            "office.toml:4: client.paths: --path: a stands there twice",
        ),
        ("paths = [\"a=10.0.0.2\"]\nrules = [\"any=use\"]", "do not go with `rules`"),
        ("paths = [\"auto\", \"a=10.0.0.2\"]", "do not go with \"auto\""),
        ("rules = [\"any=sometimes\"]", "office.toml:4: client.rules: "),
        ("table = 254", "office.toml:4: client.table: this routing table belongs to the system"),
        ("key = \"/k\"", "a `key` needs its `certificate`"),
        ("search = [\"a b\"]", "office.toml:4: client.search: "),
        ("killswitch = true", "office.toml:4: client.killswitch: unknown field"),
        ("ca = \"/nowhere\"", "office.toml:4: client.ca: /nowhere: No such file"),
        ("[client.only]\nports = [\"443\"]", "office.toml:5: client.only.ports: \"443\" is no port"),
        (
            "[client.bypass]\nprograms = [\"../a\"]",
            "office.toml:5: client.bypass.programs: \"../a\" is no control group",
        ),
    ] {
        let said = read(line).unwrap_err().to_string();
        assert!(said.contains(problem) && !said.contains('\n'), "{line}: {said}");
    }
    assert!(read("[client]").is_err());
    let nothing = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    let said = Settings::read(nothing.path()).unwrap_err().to_string();
    // The name of a temporary file begins with a dot.
    assert!(said.contains("names the tunnel"), "{said}");
}

#[test]
fn a_tunnel_for_everything_has_a_table_of_its_own_which_the_server_is_not_reached_by() {
    let client = client("table = 77\nexclude = [\"192.168.0.0/16\"]\n[client.bypass]\nports = [\"tcp/25\"]");
    let facts = facts(&["0.0.0.0/0", "::/0"]);
    assert_eq!(facts.table(&client), 77);
    let said = lines(&plan::routing(&client, &facts));
    let expected = "ip rule add priority 5200 to 192.0.2.9 ipproto udp dport 4433 lookup 254\n\
                    ip rule add priority 5201 to 192.168.0.0/16 lookup 254\n\
                    ip rule add priority 5202 ipproto tcp dport 25 lookup 254\n\
                    ip rule add priority 5203 lookup 254 suppress_prefixlength 0\n\
                    ip rule add priority 5204 lookup 77\n";
    assert!(said.starts_with(expected), "{said}");
    assert!(said.contains("ip -6 rule add priority 5204 lookup 77\n"), "{said}");
    assert!(plan::guard(&client, &facts).is_empty(), "nobody asked for a firewall");
}

#[test]
fn a_tunnel_for_one_network_adds_a_route_and_a_rule_for_the_server() {
    let client = client("");
    let facts = facts(&["192.0.2.0/24"]);
    assert_eq!(facts.table(&client), netlink::MAIN);
    assert_eq!(
        lines(&plan::routing(&client, &facts)),
        "ip rule add priority 5200 to 192.0.2.9 ipproto udp dport 4433 lookup 254\n"
    );
}

#[test]
fn a_kill_switch_rejects_what_belongs_into_the_tunnel_and_nothing_else() {
    let everything = client("kill_switch = true\n[client.bypass]\nports = [\"udp/123\"]");
    let said = lines(&plan::guard(&everything, &facts(&["0.0.0.0/0", "::/0"])));
    for hook in ["leave", "pass"] {
        let rules: Vec<&str> = said
            .lines()
            .filter_map(|line| line.split_once(&format!(" {hook} ")))
            .map(|(_, rule)| rule)
            .collect();
        assert_eq!(rules.last(), Some(&"reject"), "{said}");
        assert!(rules.contains(&"ip daddr 192.0.2.9/32 udp dport 4433 accept"), "{said}");
        assert!(rules.contains(&"udp dport 123 accept"), "{said}");
    }
    let some = client("kill_switch = true\n[client.only]\nports = [\"tcp/443\"]");
    let said = lines(&plan::guard(&some, &facts(&["10.0.0.0/8"])));
    assert!(said.contains("leave ip daddr 10.0.0.0/8 tcp dport 443 reject\n"), "{said}");
    assert!(!said.contains("leave reject"), "{said}");
}

#[test]
fn programs_are_told_apart_by_control_group_and_mark() {
    let client = client("table = 77\n[client.only]\nprograms = [\"work.slice/a.scope\"]");
    let facts = facts(&["0.0.0.0/0"]);
    let said = lines(&plan::guard(&client, &facts));
    assert!(said.contains("socket cgroupv2 level 2 \"work.slice/a.scope\" meta mark set 0x4d"), "{said}");
    let said = lines(&plan::routing(&client, &facts));
    assert!(said.contains("ip rule add priority 5204 fwmark 0x4d lookup 77\n"), "{said}");
    assert!(!said.contains("priority 5204 lookup"), "the others stay outside: {said}");
}
