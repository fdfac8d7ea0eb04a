//! Machines of their own: namespaces of network and files, with links between them.

use crate::support::{Running, code, said};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The preparation of a machine: files of its own where `hvq up` writes.
const PREPARE: &str = "set -e; mount --make-rprivate /; mount -t tmpfs tmpfs /var/lib; mount -t tmpfs tmpfs /run; \
    mkdir /run/etc; cp -r /etc/. /run/etc/ 2> /dev/null || true; mount --bind /run/etc /etc; rm -f /etc/resolv.conf; \
    echo 'nameserver 198.51.100.53' > /etc/resolv.conf; ip link set lo up; nft list ruleset; \
    for name in default all; do echo 0 > /proc/sys/net/ipv6/conf/$name/accept_dad; done; \
    echo ready; exec sleep 600";

/// A machine. It is gone when this is dropped.
pub(super) struct Host {
    child: Child,
    user: bool,
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Host {
    /// A machine without links, in the user namespace of `beside` if that has one; `None` if the system permits none, which is said.
    pub(super) fn new(beside: Option<&Self>) -> Option<Self> {
        let root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
        let mut command = match beside {
            Some(beside) if beside.user => {
                let mut command = Command::new("nsenter");
                command.args(["--user", "--preserve-credentials", "--target"]);
                command.arg(beside.child.id().to_string()).arg("unshare");
                command
            }
            _ => Command::new("unshare"),
        };
        if !root && beside.is_none() {
            command.args(["--user", "--map-root-user"]);
        }
        command.args(["--net", "--mount", "sh", "-c", PREPARE]).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.trim() == "ready" {
            return Some(Self { child, user: !root });
        }
        let output = child.wait_with_output().unwrap();
        eprintln!("SKIPPED: this test needs namespaces, TUN, nftables and iproute2: {}", said(&output));
        None
    }

    /// A command of this machine.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        let target = self.child.id().to_string();
        if self.user {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.args(["--net", "--mount", "--target", &target, "--", program]);
        command.env_remove("XDG_RUNTIME_DIR").stdin(Stdio::null());
        command
    }

    /// Joins it and `other` by a link of two devices: addresses begin as said, and end in 1 here and in 2 there.
    pub(super) fn link(&self, other: &Self, (here, there): (&str, &str), (v4, v6): (&str, &str)) {
        other.shell(&format!("ip link add {there} type veth peer name {here} netns {}", self.child.id()));
        for (host, device, number) in [(self, here, 1), (other, there, 2)] {
            host.shell(&format!(
                "ip link set {device} up; ip address add {v4}.{number}/24 dev {device}; \
                 ip address add {v6}::{number}/64 dev {device} nodad"
            ));
        }
    }

    /// Starts a program that tells whoever asks at these addresses which address it has.
    pub(super) fn tell(&self, addresses: &[&str]) -> Child {
        self.command("python3").args(["-c", TELL]).args(addresses).spawn().unwrap()
    }

    /// Runs lines of a shell, and returns what they print.
    pub(super) fn shell(&self, lines: &str) -> String {
        let output = self.try_shell(lines);
        assert_eq!(code(&output), 0, "{lines}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(super) fn try_shell(&self, lines: &str) -> Output {
        self.command("sh").args(["-c", lines]).output().unwrap()
    }

    /// `hvq` with `words`.
    pub(super) fn hvq(&self, words: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_hvq"));
        command.args(words);
        command
    }

    /// All that `hvq up` may change.
    pub(super) fn state(&self) -> String {
        self.shell(
            "ip -o address; for v in -4 -6; do ip $v route show table all; ip $v rule; done; nft list ruleset; \
             stat -c '%F %a' /etc/resolv.conf; cat /etc/resolv.conf; ls /etc | grep resolv; \
             cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding /proc/sys/net/ipv4/conf/all/src_valid_mark; \
             grep . /proc/sys/net/ipv6/conf/*/accept_ra",
        )
    }

    /// Returns who a server hears that is asked from here over `kind` (`tcp` or `udp`); nobody if there is no answer.
    pub(super) fn seen_by(&self, address: &str, port: u16, kind: &str) -> Option<String> {
        self.seen_within("true", (address, port), kind)
    }

    /// The same of a program that runs `first` in its shell before it asks.
    pub(super) fn seen_within(
        &self,
        first: &str,
        (address, port): (&str, u16),
        kind: &str,
    ) -> Option<String> {
        let program = format!(
            "import socket\n\
             s = socket.socket(socket.AF_INET6 if ':' in '{address}' else socket.AF_INET, \
             socket.SOCK_STREAM if '{kind}' == 'tcp' else socket.SOCK_DGRAM); s.settimeout(2)\n\
             s.connect(('{address}', {port})); s.send(b'x'); print(s.recv(100).decode())"
        );
        let lines = format!("{first} && exec python3 -c \"$0\"");
        let output = self.command("sh").args(["-c", &lines, &program]).output().unwrap();
        (code(&output) == 0).then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    /// Makes a control group, and returns its name; `None` if the system permits none.
    pub(super) fn control_group(&self) -> Option<String> {
        let name = format!("hvq-test-{}", self.child.id());
        let made =
            self.try_shell(&format!("mount -t cgroup2 none /sys/fs/cgroup && mkdir /sys/fs/cgroup/{name}"));
        if code(&made) != 0 {
            eprintln!("SKIPPED in part: splits by program need control groups: {}", said(&made));
            return None;
        }
        Some(name)
    }
}

/// Tells whoever asks on ports 7 and 8 which address it has.
const TELL: &str = "
import socket, sys, threading
def name(a): return a[0].replace('::ffff:', '').encode()
def udp(s):
    while True:
        try: d, a = s.recvfrom(100); s.sendto(name(a), a)
        except OSError: pass
def tcp(s):
    while True:
        try: c, a = s.accept(); c.settimeout(1); c.recv(100); c.sendall(name(a)); c.close()
        except OSError: pass
for port in (7, 8):
    for address in sys.argv[1:]:
        family = socket.AF_INET6 if ':' in address else socket.AF_INET
        s = socket.socket(family, socket.SOCK_DGRAM); s.bind((address, port)); threading.Thread(target=udp, args=(s,)).start()
        s = socket.socket(family); s.setsockopt(1, 2, 1); s.bind((address, port)); s.listen(9)
        threading.Thread(target=tcp, args=(s,)).start()
";

/// A server of tunnels, which is killed when this is dropped: also by a test that fails.
pub(super) struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

/// The token of the client.
pub(super) const TOKEN: &str = "a-token-of-some-length";

/// A client behind a link to a server, beyond which are 192.0.2.1 and 2001:db8:2::1.
pub(super) struct World {
    pub(super) client: Host,
    pub(super) server: Host,
    pub(super) folder: tempfile::TempDir,
    pub(super) telling: Vec<Child>,
}

impl Drop for World {
    fn drop(&mut self) {
        for mut telling in self.telling.drain(..) {
            let _ended = telling.kill();
            let _status = telling.wait();
        }
    }
}

impl World {
    pub(super) fn new() -> Option<Self> {
        let client = Host::new(None)?;
        let server = Host::new(Some(&client))?;
        server.link(&client, ("down0", "up0"), ("10.9.0", "fd09"));
        client.shell("ip route add default via 10.9.0.1; ip -6 route add default via fd09::1");
        server.shell("ip address add 192.0.2.1/32 dev lo; ip address add 2001:db8:2::1/128 dev lo");
        let folder = tempfile::tempdir().unwrap();
        let mut world = Self { client, server, folder, telling: Vec::new() };
        let telling = world.server.tell(&["192.0.2.1", "2001:db8:2::1"]);
        world.telling.push(telling);
        fs::write(world.file("token"), TOKEN).unwrap();
        let made = rcgen::generate_simple_self_signed(["10.9.0.1".to_owned()]).unwrap();
        fs::write(world.file("ca.pem"), made.cert.pem()).unwrap();
        fs::write(world.file("key.pem"), made.signing_key.serialize_pem()).unwrap();
        wait_until("the hosts beyond answer", || {
            world.client.seen_by("192.0.2.1", 7, "tcp").is_some()
                && world.client.seen_by("2001:db8:2::1", 8, "tcp").is_some()
        });
        Some(world)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a server of tunnels that lead everywhere; it ends when the result is dropped.
    pub(super) fn serve(&self) -> Server {
        let mut command = self.server.hvq(&["-q", "tunnel", "serve", "--cert"]);
        command.arg(self.file("ca.pem")).arg("--key").arg(self.file("key.pem"));
        command.args(["--listen", "[::]:4433", "--route", "0.0.0.0/0", "--route", "::/0"]);
        let server = Server(command.env("HVQ_TOKEN", TOKEN).spawn().unwrap());
        self.wait_for_server();
        server
    }

    /// Waits until something listens where the server does.
    pub(super) fn wait_for_server(&self) {
        let listens = || code(&self.server.try_shell("grep -q ':1151 ' /proc/net/udp6")) == 0;
        wait_until("the server listens", listens);
    }

    /// Writes the file of a client with these further lines, and returns its path.
    pub(super) fn client_file(&self, lines: &str) -> PathBuf {
        let text = format!(
            "[client]\nserver = \"https://10.9.0.1:4433\"\ntoken_file = \"{}\"\nca = \"{}\"\n{lines}\n",
            self.file("token").display(),
            self.file("ca.pem").display()
        );
        fs::write(self.file("office.toml"), text).unwrap();
        self.file("office.toml")
    }

    /// Brings a tunnel up, and waits until it is.
    pub(super) fn up(&self, file: &Path) -> Running {
        let up = Running::of(&mut self.client.hvq(&["up", "--json", file.to_str().unwrap()]));
        assert_eq!(up.ready["state"], "up", "{}", up.ready);
        up
    }

    /// Runs `hvq down` of the file.
    pub(super) fn down(&self, file: &Path) -> String {
        let output = self.client.hvq(&["down", file.to_str().unwrap()]).output().unwrap();
        assert_eq!(code(&output), 0, "{}", said(&output));
        said(&output)
    }

    /// The number of changes in the journal of the client.
    pub(super) fn changes(&self) -> usize {
        let output = self.client.try_shell("cat /var/lib/hvq-up/office.json");
        let journal: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        journal["changes"].as_array().map_or(0, Vec::len)
    }
}

pub(super) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        sleep(Duration::from_millis(20));
    }
}
