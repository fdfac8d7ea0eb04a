//! `hvq up` and `hvq down` on machines of their own: everything goes as the file says, and everything is restored.
//!
//! These tests are skipped, and say so, if the system does not permit namespaces.

mod host;
mod server;

use crate::support::{code, said};
use host::{World, wait_until};
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// A client that changes all that there is to change.
const EVERYTHING: &str =
    "dns = [\"192.0.2.53\"]\nkill_switch = true\ntcp_lane = false\nexclude = [\"10.77.0.0/16\"]";

fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").arg(name).arg(process.to_string()).status().unwrap();
    assert!(sent.success());
}

#[test]
fn everything_goes_through_the_tunnel_and_every_signal_leaves_the_system_as_it_was() {
    let Some(world) = World::new() else { return };
    let _server = world.serve();
    let file = world.client_file(EVERYTHING);
    let before = world.client.state();
    assert_eq!(world.client.seen_by("192.0.2.1", 7, "udp").as_deref(), Some("10.9.0.2"));
    for end in ["-TERM", "-INT", "-HUP", "down"] {
        let up = world.up(&file);
        for kind in ["udp", "tcp"] {
            assert_eq!(world.client.seen_by("192.0.2.1", 7, kind).as_deref(), Some("100.64.200.2"), "{kind}");
            assert_eq!(world.client.seen_by("2001:db8:2::1", 7, kind).as_deref(), Some("fd68:7671:0:c8::2"));
        }
        let names = world.client.shell("cat /etc/resolv.conf");
        assert!(names.ends_with("nameserver 192.0.2.53\n"), "{names}");
        assert_ne!(world.client.state(), before);
        match end {
            "down" => drop(world.down(&file)),
            signal_name => signal(signal_name, up.id()),
        }
        assert_eq!(up.wait().0, 0, "{end}");
        assert_eq!(world.client.state(), before, "{end}");
    }
    assert!(world.down(&file).contains("is not up"));
}

#[test]
fn a_tunnel_that_is_killed_at_any_moment_is_undone_by_the_next_up_or_down() {
    let Some(world) = World::new() else { return };
    let _server = world.serve();
    let file = world.client_file(EVERYTHING);
    let before = world.client.state();
    // The firewall is the first change, rules follow, the file of name servers is the last.
    for changes in [1, 2, 5, 8] {
        let mut up = world.client.hvq(&["-q", "up", file.to_str().unwrap()]).spawn().unwrap();
        wait_until("the changes are made", || world.changes() >= changes);
        up.kill().unwrap();
        up.wait().unwrap();
        // The last that was written down may not be made yet.
        assert!(changes == 1 || world.client.state() != before, "{changes}");
        let said = world.down(&file);
        assert!(said.contains("was killed: undoing"), "{said}");
        assert_eq!(world.client.state(), before, "{changes}");
        assert_eq!(world.changes(), 0);
    }
    let mut up = world.client.hvq(&["-q", "up", file.to_str().unwrap()]).spawn().unwrap();
    wait_until("the changes are made", || world.changes() >= 8);
    up.kill().unwrap();
    up.wait().unwrap();
    let up = world.up(&file);
    let seen = world.client.seen_by("192.0.2.1", 7, "udp");
    assert!(seen.as_ref().is_some_and(|seen| seen.starts_with("100.64.200.")), "{seen:?}");
    let again = world.client.hvq(&["up", file.to_str().unwrap()]).output().unwrap();
    assert!(code(&again) == 2 && said(&again).contains("is up already"), "{}", said(&again));
    up.interrupt();
    assert_eq!(up.wait().0, 0);
    assert_eq!(world.client.state(), before);
}

#[test]
fn the_kill_switch_holds_while_there_is_no_tunnel_and_after_a_kill() {
    let Some(world) = World::new() else { return };
    let server = world.serve();
    let file = world.client_file("kill_switch = true\ntcp_lane = false");
    let reached = || {
        ["192.0.2.1", "2001:db8:2::1"]
            .map(|address| ["udp", "tcp"].map(|kind| world.client.seen_by(address, 7, kind).is_some()))
    };
    let mut up = world.up(&file);
    assert_eq!(reached(), [[true; 2]; 2]);
    drop(server);
    assert_eq!(reached(), [[false; 2]; 2], "nothing gets past the tunnel while its server is away");
    let _server = world.serve();
    let line = up.next_line();
    assert!(line.contains("up again"), "{line:?}");
    assert_eq!(world.client.seen_by("192.0.2.1", 7, "udp").as_deref(), Some("100.64.200.2"));
    signal("-KILL", up.id());
    drop(up);
    assert_eq!(reached(), [[false; 2]; 2], "nothing leaves before somebody says so");
    world.down(&file);
    assert_eq!(reached(), [[true; 2]; 2]);
}

#[test]
fn a_tunnel_goes_on_when_its_only_link_gets_another_address() {
    let Some(world) = World::new() else { return };
    let _server = world.serve();
    let _up = world.up(&world.client_file("tcp_lane = false"));
    let same = || world.client.seen_by("192.0.2.1", 7, "udp").as_deref() == Some("100.64.200.2");
    assert!(same());
    for address in ["10.9.0.7", "10.9.0.8"] {
        world
            .client
            .shell(&format!("ip address flush dev up0 to 10.9.0.0/24; ip address add {address}/24 dev up0"));
        // A tunnel that was asked for again would have another address inside: the server keeps the first for a while.
        wait_until("the tunnel goes on", same);
    }
}

#[test]
fn a_failure_leaves_the_system_as_it_was_and_what_is_there_stays() {
    let Some(world) = World::new() else { return };
    let server = world.serve();
    let refused = |lines: &str, exit: i32, problem: &str| {
        let before = world.client.state();
        let file = world.client_file(lines);
        let output = world.client.hvq(&["up", file.to_str().unwrap()]).output().unwrap();
        assert_eq!(code(&output), exit, "{}", said(&output));
        assert!(said(&output).contains(problem), "{problem}: {}", said(&output));
        assert_eq!(world.client.state(), before, "{problem}");
    };
    fs::write(world.file("token"), "another-token-of-some-length").unwrap();
    refused(EVERYTHING, 3, "401");
    fs::write(world.file("token"), host::TOKEN).unwrap();
    refused("mtu = 9000", 2, "office.toml:5: client.mtu: packets have 1280 to 1360 bytes");
    // What somebody else made is in the way, and is still there afterwards.
    world.client.shell(
        "ip tuntap add hvq7 mode tun; ip route add 10.66.0.0/16 via 10.9.0.1; nft add table inet hvq_office",
    );
    refused("device = \"hvq7\"", 1, "there is a device hvq7 already");
    refused("routes = [\"10.66.0.0/16\"]", 1, "cannot route 10.66.0.0/16");
    refused(EVERYTHING, 1, "there is a table hvq_office");
    world.client.shell("nft delete table inet hvq_office");
    drop(server);
    // As no answer comes, the handshake is given up.
    refused(EVERYTHING, 3, "10.9.0.1");
}

#[test]
fn a_link_that_is_removed_leaves_nothing_of_the_tunnel() {
    let Some(world) = World::new() else { return };
    let _server = world.serve();
    let file = world.client_file(EVERYTHING);
    let before = world.client.state();
    let up = world.up(&file);
    world.client.shell("ip link delete office");
    assert_eq!(up.wait().0, 1, "there is no tunnel without its device");
    assert_eq!(world.client.state(), before);
    let up = world.up(&file);
    world.client.shell("ip link delete up0");
    sleep(Duration::from_millis(200));
    signal("-TERM", up.id());
    assert_eq!(up.wait().0, 0);
    let after = world.client.state();
    assert!(!after.contains("office") && !after.contains("520") && !after.contains("hvq"), "{after}");
    let own = "nameserver 198.51.100.53";
    assert!(before.contains(own) && after.contains(own), "{after}");
}

#[test]
fn after_a_restart_of_the_system_only_files_are_put_back() {
    let Some(world) = World::new() else { return };
    let _server = world.serve();
    let file = world.client_file(EVERYTHING);
    let up = world.up(&file);
    signal("-KILL", up.id());
    drop(up);
    // Each start of the system has a number; rules and tables of the next one are somebody else's, whatever their names.
    world.client.shell("sed -i 's/\"boot\":\"[^\"]*\"/\"boot\":\"another\"/' /var/lib/hvq-up/office.json");
    world.down(&file);
    assert_eq!(world.changes(), 0);
    let after = world.client.state();
    assert!(after.contains("table inet hvq_office") && after.contains("5200:"), "{after}");
    assert!(after.contains("nameserver 198.51.100.53") && !after.contains("192.0.2.53"), "{after}");
}

#[test]
fn ports_and_programs_go_through_the_tunnel_or_past_it() {
    let Some(world) = World::new() else { return };
    let _server = world.serve();
    let before = world.client.state();
    let seen = |port| world.client.seen_by("192.0.2.1", port, "udp");
    let (through, past) = (Some("100.64.200.2".to_owned()), Some("10.9.0.2".to_owned()));
    let with = |lines: &str, check: &dyn Fn()| {
        let up = world.up(&world.client_file(&format!("tcp_lane = false\n{lines}")));
        check();
        up.interrupt();
        assert_eq!(up.wait().0, 0);
        assert_eq!(world.client.state(), before, "{lines}");
    };
    with("[client.only]\nports = [\"udp/7\"]", &|| {
        assert_eq!((seen(7), seen(8)), (through.clone(), past.clone()));
    });
    with("kill_switch = true\n[client.bypass]\nports = [\"udp/7\"]", &|| {
        assert_eq!((seen(7), seen(8)), (past.clone(), through.clone()));
    });
    // The longer of two networks counts, as in every routing table.
    with("routes = [\"192.0.2.0/28\"]", &|| {
        assert_eq!((seen(7), seen(8)), (through.clone(), through.clone()));
        assert_eq!(world.client.seen_by("2001:db8:2::1", 7, "udp").as_deref(), Some("fd09::2"));
    });
    if let Some(group) = world.client.control_group() {
        let join = format!("echo $$ > /sys/fs/cgroup/{group}/cgroup.procs");
        let within = || world.client.seen_within(&join, ("192.0.2.1", 7), "udp");
        with(&format!("[client.only]\nprograms = [\"{group}\"]"), &|| {
            assert_eq!((within(), seen(7)), (through.clone(), past.clone()));
        });
        with(&format!("kill_switch = true\n[client.bypass]\nprograms = [\"{group}\"]"), &|| {
            assert_eq!((within(), seen(7)), (past.clone(), through.clone()));
        });
        world.client.shell(&format!("rmdir /sys/fs/cgroup/{group}"));
    }
}
