//! `hvq run` and `hvq tunnel`, with real programs in real namespaces.
//!
//! These tests are skipped, and say so, if the system does not permit namespaces.

use crate::support::{code, hvq, said};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Serves TCP and UDP at the far end: what comes is sent back.
pub(crate) const ECHO: &str = r#"
import socket, threading
def bind(family, kind):
    s = socket.socket(family, kind); s.setsockopt(1, 2, 1)
    if family == socket.AF_INET6: s.setsockopt(41, 26, 1)
    s.bind(('', 7)); return s
def tcp(s):
    while True:
        c, _ = s.accept(); threading.Thread(target=serve, args=(c,)).start()
def serve(c):
    with c:
        while True:
            d = c.recv(65536)
            if not d: return
            c.sendall(d)
def udp(s):
    while True:
        d, a = s.recvfrom(65536); s.sendto(d, a)
families = (socket.AF_INET, socket.AF_INET6)
datagrams = [bind(family, socket.SOCK_DGRAM) for family in families]
streams = [bind(family, socket.SOCK_STREAM) for family in families]
for s in streams: s.listen(64)
for s in datagrams: threading.Thread(target=udp, args=(s,)).start()
for s in streams: threading.Thread(target=tcp, args=(s,)).start()
"#;

/// The first lines of the tests' own programs.
pub(crate) const CLIENT: &str = r"
import socket, time, sys
def echo(address, data, kind=socket.SOCK_DGRAM):
    s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, kind); s.settimeout(5)
    t = time.time(); s.connect((address, 7)); s.sendall(data)
    got = b''
    while len(got) < len(data):
        got += s.recv(65536)
    assert got == data, (len(got), len(data))
    return (time.time() - t) * 1000
";

/// Returns true if namespaces can be made; says what is missing if not.
pub(crate) fn permitted() -> bool {
    let output = run(&["--direct"], None, &["true"]);
    if code(&output) == 0 {
        return true;
    }
    eprintln!("SKIPPED: this test needs network namespaces, TUN and iproute2: {}", said(&output));
    false
}

/// `hvq run OPTIONS --server SERVER -- COMMAND`.
fn run(options: &[&str], server: Option<&str>, command: &[&str]) -> Output {
    let mut run = hvq();
    run.arg("run").args(options);
    if let Some(server) = server {
        run.args(["--server", server]);
    }
    run.arg("--").args(command).output().unwrap()
}

/// The same for a program in Python against the echo server.
fn python(options: &[&str], program: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("echo.py");
    fs::write(&server, ECHO).unwrap();
    let server = format!("exec python3 {}", server.display());
    run(options, Some(&server), &["python3", "-c", &format!("{CLIENT}\n{program}")])
}

fn report(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn figures<'a>(report: &'a Value, channel: &str) -> &'a Value {
    let channels = report["channels"].as_array().unwrap();
    channels.iter().find(|figures| figures["name"] == channel).unwrap()
}

#[test]
fn the_exit_code_of_the_command_is_passed_on() {
    if !permitted() {
        return;
    }
    for (command, wanted) in [
        (&["sh", "-c", "exit 7"][..], 7),
        (&["sh", "-c", "kill -9 $$"], 137),
        (&["no-such-command-anywhere"], 127),
        (&["/etc"], 126),
    ] {
        let output = run(&["--direct"], None, command);
        assert_eq!(code(&output), wanted, "{command:?}: {}", said(&output));
    }
    let output = run(&["--direct"], Some("exit 3"), &["true"]);
    assert!(code(&output) == 1 && said(&output).contains("exit code 3"), "{}", said(&output));
}

#[test]
fn a_download_crosses_both_channels_and_every_packet_is_logged() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let body: Vec<u8> = (0..600_000_u32).map(|index| (index % 251) as u8).collect();
    fs::write(folder.path().join("body"), &body).unwrap();
    let [target, packets, figures_at] =
        ["target", "packets.csv", "report.json"].map(|name| folder.path().join(name));
    let server = format!("exec python3 -m http.server 8000 --directory {}", folder.path().display());
    let output = run(
        &[
            "--embb",
            "rtt=40ms,rate=60mbit",
            "--packets",
            packets.to_str().unwrap(),
            "--report",
            figures_at.to_str().unwrap(),
        ],
        Some(&server),
        &["curl", "-sS", "--max-time", "20", "-o", target.to_str().unwrap(), "http://far:8000/body"],
    );
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert!(fs::read(&target).unwrap() == body, "the body is not what was served");
    assert!(said(&output).contains("lateness p50") && said(&output).contains("trusted"), "{}", said(&output));
    let report = report(&figures_at);
    let (wide, quick) = (figures(&report, "embb"), figures(&report, "urllc"));
    let bytes = |figures: &Value, way: &str| figures[way]["left"]["bytes"].as_u64().unwrap();
    assert!(bytes(wide, "down") > 400_000 && bytes(quick, "up") > 1_000, "{report}");
    let log = fs::read_to_string(&packets).unwrap();
    let rows: Vec<Vec<&str>> = log.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let left: u64 = ["embb", "urllc"]
        .iter()
        .flat_map(|name| {
            ["up", "down"].map(|way| figures(&report, name)[way]["left"]["packets"].as_u64().unwrap())
        })
        .sum();
    assert_eq!(rows.iter().filter(|row| row[7].is_empty()).count() as u64, left);
    let opening = rows.iter().find(|row| row[11] == "S").unwrap();
    assert_eq!((opening[1], opening[2], opening[8]), ("up", "urllc", "tcp"), "SYN takes the quick channel");
    // 2.5 ms and the time to send 60 bytes at 2 Mbit/s.
    let delay: f64 = opening[4].parse().unwrap();
    assert!((2.5..4.0).contains(&delay), "{opening:?}");
}

#[test]
fn answers_take_the_time_of_the_channel_over_both_versions_of_ip() {
    if !permitted() {
        return;
    }
    let program = r"
for address in ('100.64.0.1', 'fd68:7671::1'):
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        echo(address, b'x', kind)
        print(min(echo(address, b'x' * 100, kind) for _ in range(5)))
";
    let output = python(&["--direct", "--embb", "rtt=30ms,rate=10mbit"], program);
    assert_eq!(code(&output), 0, "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let times: Vec<f64> = text.lines().map(|line| line.parse().unwrap()).collect();
    // A datagram takes a round trip, a connection and an answer two.
    assert!(times[0] >= 30.0 && times[1] >= 60.0 && times[2] >= 30.0 && times[3] >= 60.0, "{times:?}");
    assert!(times[0] < 60.0 && times[2] < 60.0, "{times:?}");
}

#[test]
fn large_datagrams_are_cut_into_pieces_that_fit_and_put_together_again() {
    if !permitted() {
        return;
    }
    let program =
        "for address in ('100.64.0.1', 'fd68:7671::1'):\n    echo(address, bytes(range(250)) * 40)\n";
    let folder = tempfile::tempdir().unwrap();
    let packets = folder.path().join("packets.jsonl");
    let options = ["--steer", "pkt-state", "--mtu", "1280", "--packets", packets.to_str().unwrap()];
    let output = python(&options, program);
    assert_eq!(code(&output), 0, "{}", said(&output));
    let log = fs::read_to_string(&packets).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["bytes"].as_u64().unwrap() <= 1280));
    assert!(lines.iter().filter(|line| line["protocol"] == "fragment").count() >= 4 * 7, "{log}");
}

#[test]
fn packets_that_are_no_packets_upset_nothing() {
    // Attacks A7 and J5, one layer below.
    if !permitted() {
        return;
    }
    let program = r"
import os, struct
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 255)
for i in range(300):
    size = i % 60
    header = struct.pack('!BBHHHBBH4s4s', 0x45 + i % 11, i % 256, 20 + size, i, 0, 64, i % 256, 0,
                         socket.inet_aton('100.64.0.2'), socket.inet_aton('100.64.0.1'))
    try: s.sendto(header + os.urandom(size), ('100.64.0.1', 0))
    except OSError: pass
for address in ('100.64.0.1', 'fd68:7671::1'):
    echo(address, b'still here')
";
    for options in [&["--direct"][..], &["--scheduler", "hvc"]] {
        let output = python(options, program);
        assert_eq!(code(&output), 0, "{options:?}: {}", said(&output));
    }
}

#[test]
fn the_command_has_a_network_processes_and_names_of_its_own() {
    if !permitted() {
        return;
    }
    let output = run(
        &["--direct"],
        None,
        &[
            "sh",
            "-c",
            "cat /etc/resolv.conf; ls /proc | grep -c '^[0-9]*$'; ip -o link | grep -v lo: | cut -d: -f2; echo $HVQ_FAR",
        ],
    );
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert_eq!((lines[0], lines[2], lines[3]), ("nameserver 100.64.0.1", "tun0", "100.64.0.1"), "{text}");
    assert!(lines[1].parse::<u32>().unwrap() < 8, "{text}");
}

/// Processes whose command line has `marker`.
fn processes(marker: &str) -> Vec<String> {
    let list = fs::read_dir("/proc").unwrap().flatten();
    let lines = list.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(marker)).collect()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        sleep(Duration::from_millis(20));
    }
}

fn devices() -> String {
    let output = Command::new("ip").args(["-o", "link"]).output().unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    names.lines().filter_map(|line| line.split(": ").nth(1).map(|name| format!("{name}\n"))).collect()
}

#[test]
fn whatever_is_killed_leaves_nothing_behind() {
    if !permitted() {
        return;
    }
    let marker = format!("98{}7", std::process::id());
    let (namespaces, before) = (fs::read_dir("/var/run/netns").map_or(0, Iterator::count), devices());
    for mode in [&["--direct"][..], &["--mptcp"], &["--scheduler", "hvc"]] {
        // The command itself and one that it leaves in the background, in a session of its own.
        let script = format!("setsid sleep {marker} & sleep {marker}");
        let mut command = hvq();
        command.arg("run").args(mode).stdout(Stdio::null()).stderr(Stdio::null());
        if mode[0] != "--direct" {
            // It does not listen, so that the command does not start: killing then counts as well.
            command.args(["--server", &format!("sleep {marker}")]);
        }
        let mut child = command.args(["--", "sh", "-c", &script]).spawn().unwrap();
        let wanted = if mode[0] == "--direct" { 5 } else { 3 };
        wait_until("the programs run", || processes(&marker).len() >= wanted);
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until("all processes end", || processes(&marker).is_empty());
    }
    assert_eq!(fs::read_dir("/var/run/netns").map_or(0, Iterator::count), namespaces);
    let left: Vec<String> =
        devices().lines().filter(|name| !before.lines().any(|old| old == *name)).map(str::to_owned).collect();
    assert!(left.iter().all(|name| !name.starts_with("tun") && !name.starts_with("embb")), "{left:?}");
}

#[test]
fn each_channel_has_an_address_of_its_own_when_they_are_apart() {
    if !permitted() {
        return;
    }
    let program = "
import os
for channel, least, most in (('EMBB', 80, 160), ('URLLC', 5, 60)):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)
    s.bind((os.environ['HVQ_' + channel + '_NEAR'], 0))
    def ping():
        t = time.time(); s.sendto(b'x', (os.environ['HVQ_' + channel + '_FAR'], 7)); s.recv(9)
        return (time.time() - t) * 1000
    # The soonest: others use the machine, too.
    soonest = min(ping() for _ in range(10))
    assert least <= soonest <= most, (channel, soonest)
";
    let output = python(&["--apart", "--embb", "rtt=80ms,rate=60mbit"], program);
    assert_eq!(code(&output), 0, "{}", said(&output));
}

#[test]
fn tcp_takes_the_controller_that_is_asked_for_at_both_ends() {
    if !permitted() {
        return;
    }
    let program = "
for address in ('100.64.0.1', 'fd68:7671::1'):
    s = socket.create_connection((address, 9)); s.settimeout(5)
    print(s.getsockopt(6, 13, 16).rstrip(b'\\0').decode(), s.recv(16).rstrip(b'\\0').decode())
";
    let tells = "
import socket, threading
def tell(s):
    while True:
        c, _ = s.accept(); c.sendall(c.getsockopt(6, 13, 16))
for address, family in (('0.0.0.0', socket.AF_INET), ('::', socket.AF_INET6)):
    s = socket.socket(family); s.setsockopt(1, 2, 1)
    if family == socket.AF_INET6: s.setsockopt(41, 26, 1)
    s.bind((address, 9)); s.listen(8); threading.Thread(target=tell, args=(s,)).start()
";
    let server = format!("exec python3 -c \"{tells}\"");
    for route in [&["--direct"][..], &["--mptcp"]] {
        let options = [route, &["--tcp", "reno"]].concat();
        let output = run(&options, Some(&server), &["python3", "-c", &format!("{CLIENT}{program}")]);
        assert_eq!(code(&output), 0, "{}", said(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "reno reno\nreno reno\n", "{route:?}");
    }
    let output = run(&["--direct", "--tcp", "warp"], None, &["true"]);
    assert!(code(&output) == 2 && said(&output).contains("warp"), "{}", said(&output));
}

#[test]
fn it_ends_with_the_process_that_started_it_where_that_is_asked_for() {
    if !permitted() {
        return;
    }
    let marker = format!("97{}3", std::process::id());
    let script = format!("exec 2> /dev/null; \"$0\" -q run --direct --parent $$ -- sleep {marker} & wait");
    let program = std::path::PathBuf::from(hvq().get_program());
    let mut shell = Command::new("sh").arg("-c").arg(&script).arg(program).spawn().unwrap();
    wait_until("the program runs", || processes(&marker).len() >= 3);
    shell.kill().unwrap();
    shell.wait().unwrap();
    wait_until("all processes end", || processes(&marker).is_empty());
    let output = run(&["--direct", "--parent", "1"], None, &["true"]);
    assert!(code(&output) == 1 && said(&output).contains("did not start this one"), "{}", said(&output));
}

/// `hvq lab live web` with a server and a browser that wait until they are ended, `marker` in their command lines; once
/// both run.
fn live_experiment(folder: &Path, marker: &str) -> std::process::Child {
    use std::os::unix::fs::PermissionsExt;
    let server = format!("exec python3 -m http.server 80 --directory /{marker} >&2");
    for (name, line) in [("nginx", server), ("chromium", format!("exec sleep {marker}"))] {
        let file = folder.join(name);
        fs::write(&file, format!("#!/bin/sh\n{line}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = hvq();
    command.args(["-q", "lab", "live", "web", "--pages", "p34", "--repetitions", "1"]).env("TMPDIR", folder);
    command.arg("--nginx").arg(folder.join("nginx")).arg("--chromium").arg(folder.join("chromium"));
    let command = command.arg("--out").arg(folder).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    wait_until("the programs run", || processes(marker).iter().any(|line| line.starts_with("sleep")));
    child
}

#[test]
fn an_experiment_in_real_time_that_is_killed_leaves_no_process_and_no_device() {
    if !permitted() {
        return;
    }
    let (folder, before) = (tempfile::tempdir().unwrap(), devices());
    let marker = format!("95{}9", std::process::id());
    let mut child = live_experiment(folder.path(), &marker);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("all processes end", || processes(&marker).is_empty());
    assert_eq!(devices(), before);
}

#[test]
fn an_experiment_in_real_time_ends_by_a_signal_and_leaves_no_file_either() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let marker = format!("94{}9", std::process::id());
    let mut child = live_experiment(folder.path(), &marker);
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    // The load that goes on comes to its end: here the browser's.
    for line in fs::read_dir("/proc").unwrap().flatten() {
        let text = fs::read_to_string(line.path().join("cmdline")).unwrap_or_default();
        if text.replace('\0', " ").trim() == format!("sleep {marker}") {
            Command::new("kill").arg(line.file_name()).status().unwrap();
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    wait_until("all processes end", || processes(&marker).is_empty());
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["chromium", "live.html", "nginx"]);
}

#[test]
fn signals_reach_the_command() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let script = format!("trap 'exit 33' TERM; touch {}; while :; do sleep 0.05; done", ready.display());
    let mut child =
        hvq().args(["run", "--direct", "--", "sh", "-c", &script]).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the command runs", || ready.exists());
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let status = child.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(33), None));
}

#[test]
fn users_without_privileges_have_the_same_where_the_system_lets_them() {
    if !permitted() {
        return;
    }
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    // Somewhere that everybody can read.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("hvq");
    fs::copy(env!("CARGO_BIN_EXE_hvq"), &program).unwrap();
    let opened = Command::new("chmod").args(["-R", "a+rx"]).arg(folder.path()).status().unwrap();
    if !root || !opened.success() {
        eprintln!(
            "SKIPPED: only root can become a user without privileges; this user has run the other tests"
        );
        return;
    }
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&program)
        .args(["run", "--direct", "--", "sh", "-c", "id -u; cat /etc/resolv.conf; ip -o addr show tun0"])
        .output()
        .unwrap();
    if said(&output).contains("no user namespace can be made") {
        eprintln!("SKIPPED: {}", said(&output));
        return;
    }
    // Some systems keep the device to root: then it is said, and what would help.
    if fs::metadata("/dev/net/tun").unwrap().permissions().mode() & 0o6 != 0o6 {
        assert_ne!(code(&output), 0);
        assert!(said(&output).contains("/dev/net/tun cannot be opened"), "{}", said(&output));
        assert!(said(&output).contains("chmod 666"), "{}", said(&output));
        return;
    }
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert!(text.starts_with("65534\nnameserver 100.64.0.1\n") && text.contains("100.64.0.2/24"), "{text}");
}

#[test]
fn a_tunnel_carries_what_programs_send_over_both_channels() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let figures_at = folder.path().join("report.json");
    let program = r"
for address in ('100.64.0.1', 'fd68:7671::1'):
    echo(address, b'x' * 1000)
    echo(address, bytes(range(250)) * 1200, socket.SOCK_STREAM)
";
    let options =
        ["--scheduler", "hvc", "--embb", "rtt=30ms,rate=60mbit", "--report", figures_at.to_str().unwrap()];
    let output = python(&options, program);
    assert_eq!(code(&output), 0, "{}", said(&output));
    let report = report(&figures_at);
    for channel in ["embb", "urllc"] {
        for way in ["up", "down"] {
            let packets = figures(&report, channel)[way]["left"]["packets"].as_u64().unwrap();
            assert!(packets > 5, "{channel} {way}: {report}");
        }
    }
}

#[test]
fn a_tunnel_is_closed_to_those_without_a_token_and_off_its_routes() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (own, echo) = (env!("CARGO_BIN_EXE_hvq"), folder.path().join("echo.py"));
    fs::write(&echo, ECHO).unwrap();
    // The far end: a server of tunnels to 100.64.0.1 and to nowhere else, on the address of the channel.
    let server = format!(
        "ip address add 192.0.2.1/32 dev lo; ip address add 192.0.2.2/32 dev lo; \
         HVQ_TOKEN='a token of some length' {own} tunnel serve --self-signed far --listen 0.0.0.0:4433 \
         --route 192.0.2.1 & exec python3 {}",
        echo.display()
    );
    let connect = |token: &str, program: &str| {
        let inner = format!("{CLIENT}\n{program}");
        let mut command = hvq();
        command.args(["run", "--embb", "rtt=10ms,rate=50mbit", "--direct", "--server", &server, "--"]);
        command.args([
            own,
            "tunnel",
            "connect",
            "-k",
            "https://100.64.0.1:4433",
            "--",
            "python3",
            "-c",
            &inner,
        ]);
        command.env("HVQ_TOKEN", token).output().unwrap()
    };
    let output = connect("a token of some length", "echo('192.0.2.1', b'hello', socket.SOCK_STREAM)");
    assert_eq!(code(&output), 0, "{}", said(&output));
    let output = connect("another token of some length", "print('must not run')");
    assert!(code(&output) == 3 && said(&output).contains("401"), "{}", said(&output));
    let beyond = "
try: echo('192.0.2.2', b'hello', socket.SOCK_STREAM)
except OSError: sys.exit(9)
";
    let output = connect("a token of some length", beyond);
    assert_eq!(code(&output), 9, "{}", said(&output));
    let output = hvq().args(["tunnel", "serve", "--self-signed", "a", "--route", "::/0"]).output().unwrap();
    assert!(code(&output) == 2 && said(&output).contains("token"), "{}", said(&output));
}
