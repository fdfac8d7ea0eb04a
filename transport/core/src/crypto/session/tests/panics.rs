//! attacks.md J2: a panic in what BoringSSL calls ends the process; it does not unwind through C. The process is a child that
//! plays the test again.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;

/// The variable that tells the child who panics.
const WHO: &str = "HVQ_PANICS";
/// The child's message if a panic came back through BoringSSL.
const UNWOUND: &str = "the panic came back";

/// A handshake in which `who` panics.
fn play(who: &str) {
    let pki = pki();
    let mut client = ClientTls::builder().alpn(["h3"]).verify(pki.verify());
    client = match who {
        "verifier" => client.verifier(Arc::new(|_| panic!("in the verifier"))),
        _ => client.keylog(Box::new(|_| panic!("in the keylog"))),
    };
    let client = client.build().unwrap();
    let handshake = || {
        let (mut client, mut server) = sessions(&client, &pki.server(), "example.test");
        shake(&mut client, &mut server, 4096).is_ok()
    };
    let played = catch_unwind(AssertUnwindSafe(handshake));
    println!("{UNWOUND}, or none was: {played:?}");
}

#[cfg(unix)]
#[test]
fn a_panic_in_what_boringssl_calls_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;

    if let Ok(who) = std::env::var(WHO) {
        return play(&who);
    }
    let name = format!("{}::a_panic_in_what_boringssl_calls_ends_the_process", module_path!());
    let (_, name) = name.split_once("::").unwrap();
    for who in ["verifier", "keylog"] {
        let mut child = Command::new("sh");
        // An abort may leave a copy of all memory behind, which nobody wants here.
        child.args(["-c", r#"ulimit -c 0; exec "$0" "$@""#]).arg(std::env::current_exe().unwrap());
        let output = child.args(["--exact", name, "--nocapture"]).env(WHO, who).output().unwrap();
        let (said, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.signal(), Some(6), "SIGABRT: {who}: {said}{errors}");
        assert!(said.contains("running 1 test") && !said.contains(UNWOUND), "{who}: {said}");
        assert!(errors.contains(&format!("in the {who}")), "{errors}");
    }
}
