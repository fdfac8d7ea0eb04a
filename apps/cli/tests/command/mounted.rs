//! `hvq tunnel connect` against the tunnels of `hvq gateway`, as two programs in namespaces.

use crate::networks::{CLIENT, ECHO, permitted};
use crate::support::{code, hvq, said};
use std::fs;
use std::path::Path;
use std::process::Output;

const TOKEN: &str = "a token of some length";

/// Returns the output of `program` within a tunnel to a gateway at the far end of a shell, which lets those with
/// [`TOKEN`] go to 192.0.2.0/24, of its own addresses to 192.0.2.1 and to no other (K20).
fn through_the_gateway(folder: &Path, token: &str, program: &str) -> Output {
    between(folder, token, (ECHO, program), &[])
}

/// The same with a server at the far end, and further options of the tunnel.
fn between(folder: &Path, token: &str, (server, program): (&str, &str), options: &[&str]) -> Output {
    let (own, echo, tokens) = (env!("CARGO_BIN_EXE_hvq"), folder.join("echo.py"), folder.join("tokens"));
    fs::write(&echo, server).unwrap();
    fs::write(&tokens, format!("ann {}\n", TOKEN.replace(' ', "-"))).unwrap();
    let server = format!(
        "ip address add 192.0.2.1/32 dev lo; ip address add 192.0.2.2/32 dev lo; \
         {own} -q gateway --self-signed far --listen 0.0.0.0:4433 --tokens {} --tunnel-route 192.0.2.0/24 --reach 192.0.2.1/32 \
         & exec python3 {}",
        tokens.display(),
        echo.display()
    );
    let inner = format!("{CLIENT}\n{program}");
    let mut command = hvq();
    command.args(["run", "--embb", "rtt=10ms,rate=50mbit", "--direct", "--server", &server, "--"]);
    command.args([own, "tunnel", "connect", "-k", "https://100.64.0.1:4433"]).args(options);
    command.args(["--", "python3", "-c", &inner]);
    command.env("HVQ_TOKEN", token.replace(' ', "-")).output().unwrap()
}

#[test]
fn packets_reach_the_networks_of_a_gateway_and_no_others() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = r"
echo('192.0.2.1', bytes(range(250)) * 1200, socket.SOCK_STREAM)
try: echo('192.0.2.2', b'hello', socket.SOCK_STREAM)
except OSError: sys.exit(9)
";
    let output = through_the_gateway(folder.path(), TOKEN, program);
    assert_eq!(code(&output), 9, "{}", said(&output));
    let output = through_the_gateway(folder.path(), "another token of some length", "print('must not run')");
    assert!(code(&output) == 3 && said(&output).contains("407"), "{}", said(&output));
}

/// A server that says who connects, and then does as it is told: it counts bytes up to their end, finishes first, or resets.
const OBEDIENT: &str = r#"
import socket, struct, sys, threading
def serve(c, peer):
    c.sendall((peer[0] + '\n').encode())
    order = c.recv(1)
    if order == b'r':
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); c.close(); return
    if order == b'f': c.shutdown(socket.SHUT_WR)
    count, reset = 0, False
    try:
        while data := c.recv(65536): count += len(data)
    except ConnectionResetError: reset = True
    print('ended', count, reset, file=sys.stderr, flush=True)
    if order == b'c': c.sendall(str(count).encode())
    c.close()
s = socket.socket(); s.setsockopt(1, 2, 1); s.bind(('', 8)); s.listen(64)
while True:
    c, peer = s.accept(); threading.Thread(target=serve, args=(c, peer)).start()
"#;

/// Connects to it, and looks at all that a program can see of a connection.
const SHREWD: &str = r"
import errno, struct
def connect(order):
    s = socket.socket(); s.settimeout(20); s.connect(('192.0.2.1', 8)); f = s.makefile('rb')
    peer = f.readline().decode().strip(); s.sendall(order); return s, f, peer
s, f, peer = connect(b'c'); s.sendall(bytes(1000000)); s.shutdown(socket.SHUT_WR)
assert f.read() == b'1000000'
s, f, _ = connect(b'f'); assert f.read() == b''; s.sendall(bytes(300000)); s.close()
s, f, _ = connect(b'r')
try: f.read(); sys.exit('an end in place of a reset')
except ConnectionResetError: pass
s, f, _ = connect(b'c'); s.sendall(b'xyz'); time.sleep(0.5)
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); f.close(); s.close()
t = time.time(); s = socket.socket(); s.settimeout(20)
assert s.connect_ex(('192.0.2.1', 9)) == errno.ECONNREFUSED
assert time.time() - t < 5
time.sleep(1); print('peer', peer, file=sys.stderr)
";

#[test]
fn tcp_keeps_its_ends_resets_and_refusals_on_streams_and_in_packets() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // On a stream the gateway connects itself; in packets the host sees the address of the tunnel.
    for (options, peer) in [(&[][..], "peer 192.0.2.1"), (&["--no-tcp-lane"], "peer 100.64.200.2")] {
        let output = between(folder.path(), TOKEN, (OBEDIENT, SHREWD), options);
        let said = said(&output);
        assert_eq!(code(&output), 0, "{said}");
        for line in [peer, "ended 1000000 False", "ended 300000 False", "ended 3 True"] {
            assert!(said.contains(line), "{line}: {said}");
        }
    }
}

/// Sends ten megabytes to the echo server, and compares what comes back.
const TEN_MEGABYTES: &str = r"
import threading
data = bytes((i * i >> 7) & 255 for i in range(65521)) * 160
s = socket.socket(); s.settimeout(60); s.connect(('100.64.200.1', 7))
def send():
    s.sendall(data); s.shutdown(socket.SHUT_WR)
threading.Thread(target=send).start()
got = bytearray()
while part := s.recv(65536): got += part
assert got == data, (len(got), len(data))
";

#[test]
fn a_flow_on_a_stream_outlives_a_link_that_dies() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (own, echo, connect) =
        (env!("CARGO_BIN_EXE_hvq"), folder.path().join("echo.py"), folder.path().join("connect.sh"));
    fs::write(&echo, ECHO).unwrap();
    let server = format!(
        "{own} -q tunnel serve --self-signed far --listen 0.0.0.0:4433 --route 100.64.200.1 & exec python3 {}",
        echo.display()
    );
    let line = format!(
        "exec {own} tunnel connect -k https://$HVQ_EMBB_FAR:4433 --path \"a=$HVQ_EMBB_NEAR>$HVQ_EMBB_FAR:4433\" \
         --path \"b=$HVQ_URLLC_NEAR>$HVQ_URLLC_FAR:4433\" -- python3 -c '{}'",
        format!("{CLIENT}\n{TEN_MEGABYTES}").replace('\'', "\"")
    );
    fs::write(&connect, line).unwrap();
    let mut command = hvq();
    command.args(["run", "--apart", "--embb", "rtt=20ms,rate=16mbit,blackout=4s..300s"]);
    command.args(["--urllc", "rtt=40ms,rate=12mbit", "--server", &server, "--", "sh"]).arg(&connect);
    let output = command.env("HVQ_TOKEN", TOKEN).output().unwrap();
    assert_eq!(code(&output), 0, "{}", said(&output));
}
