//! The examples do what they say: each ends with an error if it did not.

#[path = "../examples/echo.rs"]
mod echo;
#[cfg(feature = "runtime-smol")]
#[path = "../examples/smol.rs"]
mod on_smol;
#[path = "../examples/own_controller.rs"]
mod own_controller;
#[path = "../examples/own_policy.rs"]
mod own_policy;
#[path = "../examples/path_manager.rs"]
mod path_manager;
#[path = "../examples/two_paths.rs"]
mod two_paths;

#[test]
fn the_echo_comes_back() {
    echo::main().unwrap();
}

#[test]
fn a_download_uses_two_paths() {
    two_paths::main().unwrap();
}

#[cfg(feature = "runtime-smol")]
#[test]
fn a_connection_needs_no_tokio_runtime() {
    on_smol::main().unwrap();
}

#[test]
fn a_controller_from_outside_keeps_the_contract_and_carries_a_download() {
    own_controller::main().unwrap();
}

#[test]
fn paths_follow_the_links() {
    path_manager::main().unwrap();
}

#[test]
fn a_policy_from_outside_keeps_the_contract() {
    own_policy::main().unwrap();
}
