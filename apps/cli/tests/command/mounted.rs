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
    let (own, echo, tokens) = (env!("CARGO_BIN_EXE_hvq"), folder.join("echo.py"), folder.join("tokens"));
    fs::write(&echo, ECHO).unwrap();
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
    command.args([own, "tunnel", "connect", "-k", "https://100.64.0.1:4433", "--", "python3", "-c", &inner]);
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
