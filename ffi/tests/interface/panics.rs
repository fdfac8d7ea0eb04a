//! attacks.md J2: a panic in what the library calls ends the process where it happens; nothing unwinds into C. The process is
//! a child that plays the test again.

use crate::talk::Talk;
use hvq_ffi::address::hvq_bytes;
use hvq_ffi::log::HVQ_LOG_INFO;
use hvq_ffi::scheduler::{hvq_item, hvq_path_view, hvq_placement, hvq_scheduler};
use std::ffi::{c_char, c_void};
use std::mem::size_of;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::{env, ptr};

/// The variable that names the callback that panics in the child.
const WHICH: &str = "HVQ_PANICS";
/// The child's message if a panic came out of the library.
const UNWOUND: &str = "the panic came out";

unsafe extern "C" fn verify(_: *mut c_void, _: *const c_char, _: *const hvq_bytes, _: usize) -> i32 {
    panic!("in verify");
}

unsafe extern "C" fn keylog(_: *mut c_void, _: *const c_char) {
    panic!("in keylog");
}

unsafe extern "C" fn log(_: *mut c_void, _: u64, _: u32, _: *const c_char) {
    panic!("in log");
}

unsafe extern "C" fn place(
    _: *mut c_void,
    _: *const hvq_item,
    _: *const hvq_path_view,
    _: usize,
    _: *mut hvq_placement,
) {
    panic!("in place");
}

/// A handshake during which the callback `which` panics.
fn play(which: &str) {
    let scheduler = hvq_scheduler {
        size: size_of::<hvq_scheduler>(),
        user: ptr::null_mut(),
        create: None,
        destroy: None,
        place: Some(place),
        observe: None,
        repeats: None,
        first: None,
    };
    let handshake = || {
        let mut talk = Talk::new(|transport, client, _| match which {
            "verify" => {
                client.ca_pem.length = 0;
                client.verify = Some(verify);
            }
            "keylog" => client.keylog = Some(keylog),
            "place" => transport.custom_scheduler = &scheduler,
            _ => {
                transport.log = Some(log);
                transport.log_level = HVQ_LOG_INFO;
            }
        });
        talk.exchange(20);
    };
    let played = catch_unwind(AssertUnwindSafe(handshake)).is_ok();
    println!("{UNWOUND}, or none was: {played}");
}

#[test]
fn a_panic_in_a_callback_ends_the_process_and_unwinds_into_nobody() {
    if let Ok(which) = env::var(WHICH) {
        return play(&which);
    }
    for which in ["verify", "keylog", "log", "place"] {
        let mut child = Command::new("sh");
        // An abort may leave a copy of all memory behind, which nobody wants here.
        child.args(["-c", r#"ulimit -c 0; exec "$0" "$@""#]).arg(env::current_exe().unwrap());
        child.args(["--exact", "panics::a_panic_in_a_callback_ends_the_process_and_unwinds_into_nobody"]);
        let output = child.arg("--nocapture").env(WHICH, which).output().unwrap();
        let (said, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.signal(), Some(6), "SIGABRT: {which}: {said}{errors}");
        assert!(said.contains("running 1 test") && !said.contains(UNWOUND), "{which}: {said}");
        assert!(errors.contains(&format!("in {which}")), "{errors}");
    }
}
