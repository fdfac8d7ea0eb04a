//! aioquic as a client of WebTransport, of an early draft: it talks to the example's server.

use crate::setup::within;
use crate::web_transport_echo;
use hvq::Identity;
use hvq_h3::web_transport::Terms;
use std::path::PathBuf;
use std::process::Command;

/// The client.
const SCRIPT: &str = include_str!("aioquic.py");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs aioquic: HVQ_PYTHON_PEERS=$(scripts/python-peers.sh)"]
async fn a_session_of_aioquic_echoes_over_streams_and_datagrams() {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let chain = key.cert.pem();
    let folder = tempfile::tempdir().unwrap();
    let certificate = folder.path().join("chain.pem");
    std::fs::write(&certificate, &chain).unwrap();
    let identity =
        Identity::Pem { chain: chain.into_bytes(), key: key.signing_key.serialize_pem().into_bytes() };
    let server = web_transport_echo::listen(identity).unwrap();
    let port = server.local_addr().unwrap().port();
    tokio::spawn(web_transport_echo::serve(server, Terms::default(), drop));
    let peers = std::env::var_os("HVQ_PYTHON_PEERS").expect("the folder that scripts/python-peers.sh prints");
    let python = PathBuf::from(peers).join("bin/python");
    let client = tokio::task::spawn_blocking(move || {
        Command::new(python).args(["-c", SCRIPT]).arg(port.to_string()).arg(certificate).output()
    });
    let output = within(client).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.trim(), "200-bidirectional-unidirectional-datagram", "{errors}");
}
