//! The path manager with real interfaces, in network namespaces.
//!
//! These tests are skipped, and say so, if the system does not permit namespaces.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "whatever fails in a test fails the test")]

mod network;
mod requests;

use hvq::path_manager::{LinkUse, PathManagerEvent, PathManagerEvents, Reason};
use hvq::stats::PathStats;
use hvq::{Connection, Multipath, PathId, PathManager, PathState};
use network::{Line, Network, Stage, within};
use requests::Requests;
use std::time::{Duration, Instant};

/// The state of the link `name`, once a path over it is validated.
async fn used(stage: &Stage<'_>, name: &str) -> PathId {
    let manager = &stage.manager;
    let path = |status: &hvq::path_manager::PathManagerStatus| match status.link(name)?.usage {
        LinkUse::Path { id, state: PathState::Validated, .. } => Some(id),
        _ => None,
    };
    let status = within(manager.status_when(|status| path(status).is_some())).await;
    path(&status.expect("the manager is at work")).unwrap()
}

/// Waits until no path uses the link `name`.
async fn unused(manager: &PathManager, name: &str) {
    let is_path = |status: &hvq::path_manager::PathManagerStatus| {
        status.link(name).is_some_and(|link| matches!(link.usage, LinkUse::Path { .. }))
    };
    within(manager.status_when(|status| !is_path(status))).await.expect("the manager is at work");
}

/// Waits until `path` is gone.
async fn gone(connection: &Connection, path: PathId) {
    within(async {
        while connection.path(path).is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

fn stats(connection: &Connection, path: PathId) -> PathStats {
    connection.path(path).expect("the path is open").stats
}

/// Waits until a path is opened over the link `name`, and says when, from `begun` on.
async fn first_packet(events: &mut PathManagerEvents, name: &str, begun: Instant) {
    loop {
        match within(events.recv()).await.expect("the manager is at work") {
            PathManagerEvent::Opened { link, path, after } if link == name => {
                let total = begun.elapsed();
                println!(
                    "{name}: first packet on path {path} {after:.1?} after the link was seen, {total:.1?} after the command"
                );
                // The goal is 300 ms; a machine that does much else takes its time.
                assert!(total < Duration::from_secs(5), "{total:?}");
                return;
            }
            _ => {}
        }
    }
}

#[test]
fn links_that_come_and_go_and_change_address_are_followed_while_requests_go_on() {
    let Some(network) = Network::new(&[Line::Wifi, Line::Cell]) else { return };
    network.set(&[Line::Cell.down()]);
    network.play(Multipath::UpTo(PathId(3)), "", async |stage| {
        let (manager, near) = (&stage.manager, &stage.near);
        let mut events = manager.events();
        let requests = Requests::begin(near);
        used(&stage, "wifi").await;

        // Down at the beginning, up later.
        let begun = Instant::now();
        stage.set(&[Line::Cell.up()]).await;
        first_packet(&mut events, "cell", begun).await;
        used(&stage, "cell").await;

        // Removed, and made anew.
        let old = used(&stage, "wifi").await;
        stage.set(&["link delete wifi".to_owned()]).await;
        gone(near, old).await;
        requests.go_on().await;
        let begun = Instant::now();
        stage.make(Line::Wifi).await;
        first_packet(&mut events, "wifi", begun).await;
        assert_ne!(used(&stage, "wifi").await, old);

        // Renumbered.
        let cell = used(&stage, "cell").await;
        stage.set(&Line::Cell.renumber()).await;
        let moved = |status: &hvq::path_manager::PathManagerStatus| {
            let wanted = LinkUse::Path {
                id: cell,
                state: PathState::Validated,
                local: Some(Line::Cell.other().into()),
            };
            status.link("cell").is_some_and(|link| link.usage == wanted)
        };
        within(manager.status_when(moved)).await.expect("it moves, and stays the same path");

        // A third one.
        let begun = Instant::now();
        stage.make(Line::Cable).await;
        first_packet(&mut events, "cable", begun).await;
        used(&stage, "cable").await;
        requests.go_on().await;
        requests.end().await;
    });
}

#[test]
fn rules_are_obeyed_from_the_beginning_and_when_they_change() {
    let Some(network) = Network::new(&Line::ALL) else { return };
    let rules = "cable=never\ncell=backup\nwlam*=use";
    network.play(Multipath::UpTo(PathId(3)), rules, async |stage| {
        let (manager, near) = (&stage.manager, &stage.near);
        assert_eq!(manager.status().idle_rules, ["wlam*=use"]);
        let requests = Requests::begin(near);
        let (wifi, cell) = (used(&stage, "wifi").await, used(&stage, "cell").await);
        requests.go_on().await;
        let cable = manager.status().link("cable").unwrap().usage.clone();
        assert_eq!(cable, LinkUse::Unused(Reason::Rule("cable=never".to_owned())));

        // A backup carries nothing but probes.
        let before = [stats(near, wifi), stats(near, cell)];
        requests.go_on().await;
        let after = [stats(near, wifi), stats(near, cell)];
        let spent = [0, 1].map(|path: usize| {
            let count = |stats: &PathStats| stats.counters.bytes_sent + stats.counters.bytes_received;
            count(&after[path]) - count(&before[path])
        });
        assert!(spent[0] > 10_000 && spent[1] < spent[0] / 5, "{spent:?}");

        // It takes over when the other is gone.
        stage.set(&[Line::Wifi.down()]).await;
        gone(near, wifi).await;
        requests.go_on().await;
        assert_eq!(near.paths().len(), 1, "nothing crosses the cable: {:?}", near.paths());

        // Other rules: what was forbidden is used, and the backup is not.
        manager.set_rules("cell=never".parse().unwrap());
        used(&stage, "cable").await;
        gone(near, cell).await;
        unused(manager, "cell").await;
        requests.go_on().await;
        requests.end().await;
    });
}

#[test]
fn a_budget_that_is_spent_closes_the_link() {
    let Some(network) = Network::new(&[Line::Wifi, Line::Cell]) else { return };
    network.play(Multipath::UpTo(PathId(3)), "cell=metered,budget=20kB/month", async |stage| {
        let requests = Requests::begin(&stage.near);
        let cell = used(&stage, "cell").await;
        stage.manager.set_rules("cell=metered,budget=3kB/month".parse().unwrap());
        gone(&stage.near, cell).await;
        let spent = |status: &hvq::path_manager::PathManagerStatus| {
            status
                .link("cell")
                .is_some_and(|link| matches!(link.usage, LinkUse::Unused(Reason::Spent { .. })))
        };
        within(stage.manager.status_when(spent)).await.expect("the manager is at work");
        requests.go_on().await;
        requests.end().await;
    });
}

#[test]
fn with_a_server_that_does_not_speak_multipath_the_one_path_moves() {
    let Some(network) = Network::new(&[Line::Wifi, Line::Cell]) else { return };
    network.play(Multipath::Off, "cell=backup", async |stage| {
        let requests = Requests::begin(&stage.near);
        let path = used(&stage, "wifi").await;
        requests.go_on().await;
        stage.set(&[Line::Wifi.down()]).await;
        assert_eq!(used(&stage, "cell").await, path);
        requests.go_on().await;
        stage.set(&[Line::Wifi.up()]).await;
        assert_eq!(used(&stage, "wifi").await, path, "back to the better one");
        requests.go_on().await;
        requests.end().await;
    });
}
