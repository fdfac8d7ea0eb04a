//! A server of `hvq up`, with a host beyond it that knows no way back to clients.

use super::host::{Host, World, wait_until};
use super::signal;
use crate::support::{Running, code, said};
use std::fs;
use std::path::PathBuf;

/// Server, the host beyond, and the programs that tell who asks.
struct Beyond {
    world: World,
    _far: Host,
}

impl Beyond {
    fn new() -> Option<Self> {
        let mut world = World::new()?;
        let far = Host::new(Some(&world.client))?;
        world.server.shell("ip address del 192.0.2.1/32 dev lo; ip address del 2001:db8:2::1/128 dev lo");
        far.shell("ip address add 192.0.2.1/32 dev lo; ip address add 2001:db8:2::1/128 dev lo");
        world.server.link(&far, ("out0", "in0"), ("198.51.100", "fd51"));
        world
            .server
            .shell("ip route add 192.0.2.1 via 198.51.100.2; ip -6 route add 2001:db8:2::1 via fd51::2");
        world.telling.push(far.tell(&["192.0.2.1", "2001:db8:2::1"]));
        // A service of the server itself.
        let own = world.server.tell(&["198.51.100.1"]);
        world.telling.push(own);
        for (address, kind) in [("192.0.2.1", "udp"), ("2001:db8:2::1", "tcp"), ("198.51.100.1", "tcp")] {
            // A datagram to a program that has not started is lost: nothing repeats it.
            wait_until("the host beyond answers", || world.server.seen_by(address, 7, kind).is_some());
        }
        Some(Self { world, _far: far })
    }

    fn server_file(&self, lines: &str) -> PathBuf {
        let world = &self.world;
        for (name, token) in [("token", super::host::TOKEN), ("other", "another-token-of-some-length")] {
            fs::write(world.file(name), token).unwrap();
        }
        let text = format!(
            "[server]\nlisten = [\"[::]:4433\"]\ncertificate = \"{0}/ca.pem\"\nkey = \"{0}/key.pem\"\n\
             routes = [\"0.0.0.0/0\", \"::/0\"]\nreach = [\"192.0.2.0/24\", \"198.51.100.0/24\", \"2001:db8::/32\"]\n{lines}\n\
             [[server.users]]\nname = \"ann\"\ntoken_file = \"{0}/token\"\nquota = \"200kB/month\"\n\
             [[server.users]]\nname = \"bob\"\ntoken_file = \"{0}/other\"\n",
            world.folder.path().display()
        );
        fs::write(world.file("gate.toml"), text).unwrap();
        world.file("gate.toml")
    }

    fn serve(&self, file: &std::path::Path) -> Running {
        Running::of(&mut self.world.server.hvq(&["up", "--json", file.to_str().unwrap()]))
    }

    fn seen(&self, address: &str, kind: &str) -> Option<String> {
        self.world.client.seen_by(address, 7, kind)
    }
}

#[test]
fn a_server_translates_addresses_keeps_its_own_services_and_restores_its_system() {
    let Some(beyond) = Beyond::new() else { return };
    let world = &beyond.world;
    let before = world.server.state();
    let file = beyond.server_file("");
    for (end, lane) in [("-TERM", "true"), ("-KILL", "false")] {
        let server = beyond.serve(&file);
        let up = world.up(&world.client_file(&format!("tcp_lane = {lane}")));
        for kind in ["udp", "tcp"] {
            assert_eq!(beyond.seen("192.0.2.1", kind).as_deref(), Some("198.51.100.1"), "{kind} {lane}");
            assert_eq!(beyond.seen("2001:db8:2::1", kind).as_deref(), Some("fd51::1"), "{kind} {lane}");
            // K20: it is there, and no tunnel leads to it.
            assert!(world.server.seen_by("198.51.100.1", 7, kind).is_some());
            assert_eq!(beyond.seen("198.51.100.1", kind), None, "{kind} {lane}");
            assert_eq!(beyond.seen("100.64.200.1", kind), None, "{kind} {lane}");
        }
        assert_ne!(world.server.state(), before);
        up.interrupt();
        assert_eq!(up.wait().0, 0);
        signal(end, server.id());
        if end == "-KILL" {
            drop(server);
            assert_ne!(world.server.state(), before);
            let output = world.server.hvq(&["down", file.to_str().unwrap()]).output().unwrap();
            assert_eq!(code(&output), 0, "{}", said(&output));
        } else {
            assert_eq!(server.wait().0, 0);
        }
        assert_eq!(world.server.state(), before, "{end}");
    }
}

/// Sends 300 datagrams of 1,000 bytes.
const FLOOD: &str = "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                     for i in range(300): s.sendto(bytes(1000), ('192.0.2.1', 9))";

#[test]
fn a_quota_outlasts_tunnels_flows_and_the_server() {
    // K28: several tunnels, reconnections and restarts share one account.
    let Some(beyond) = Beyond::new() else { return };
    let world = &beyond.world;
    let file = beyond.server_file("");
    let server = beyond.serve(&file);
    let client = world.client_file("");
    let up = world.up(&client);
    assert!(beyond.seen("192.0.2.1", "udp").is_some());
    let flooded = world.client.command("python3").args(["-c", FLOOD]).status().unwrap();
    assert!(flooded.success());
    wait_until("the quota is exhausted", || beyond.seen("192.0.2.1", "udp").is_none());
    assert_eq!(beyond.seen("192.0.2.1", "tcp"), None, "flows are of the same account");
    up.interrupt();
    up.wait();
    let refused = || {
        let output = world.client.hvq(&["up", client.to_str().unwrap()]).output().unwrap();
        assert!(code(&output) == 3 && said(&output).contains("429"), "{}", said(&output));
    };
    refused();
    signal("-TERM", server.id());
    server.wait();
    let _server = beyond.serve(&file);
    refused();
    fs::copy(world.file("other"), world.file("token")).unwrap();
    let up = world.up(&client);
    assert!(beyond.seen("192.0.2.1", "udp").is_some(), "somebody else has an account of his own");
    up.interrupt();
    up.wait();
}
