//! The contract test suite: what every congestion controller must keep, on simulated paths and for extreme events.
//!
//! A controller of one's own is tested like those of this crate:
//!
//! ```
//! use hvq_transport::congestion::{Algorithm, contract};
//!
//! contract::check(&Algorithm::NewReno, 42);
//! ```
//!
//! [`Controller`](super::Controller) lists the clauses.

mod extremes;
mod path;
#[cfg(test)]
mod tests;
mod witness;

use super::simulation::{DATAGRAM, Simulation};
use super::{
    Cause, ControllerFactory, LossSample, LostPacket, MarkSample, Persistence, SpuriousSample,
    initial_window, minimum_window,
};
use crate::time::Instant;
use path::LosslessPath;
use std::time::Duration;

/// The longest name, in bytes: what the statistics of the C interface hold.
const LONGEST_NAME: usize = 15;

/// Drives the controllers that `factory` makes over paths drawn from `seed` and through extreme events, and panics with
/// the clause of the [contract](super::Controller) that one breaks.
///
/// A call takes some seconds of processor time in a build without optimisation.
pub fn check(factory: &dyn ControllerFactory, seed: u64) {
    check_beginning(factory);
    extremes::check(factory, seed);
    let path = LosslessPath::drawn(seed);
    check_determinism(factory, path);
    check_losses(factory, path);
    check_an_outage(factory, path);
    check_little_to_send(factory, path);
    check_an_idle_time(factory, path);
    check_undo(factory, path);
}

/// RFC 9002 §7.2, and the name.
fn check_beginning(factory: &dyn ControllerFactory) {
    for size in [1200, 1280, 1452, 9000, 65_527] {
        let controller = factory.build(size);
        let (window, name) = (controller.window(), controller.name());
        assert!(
            (minimum_window(size)..=initial_window(size)).contains(&window),
            "{name} begins with a window of {window} bytes for datagrams of {size}"
        );
        assert!(
            !name.is_empty() && name.is_ascii() && name.len() <= LONGEST_NAME,
            "{name:?} is no name of 1 to {LONGEST_NAME} bytes of ASCII"
        );
    }
}

/// Equal events give equal answers.
fn check_determinism(factory: &dyn ControllerFactory, path: LosslessPath) {
    let (mut one, mut twin) = (path.under(factory), path.under(factory));
    for tenth in 1..=60 {
        let to = f64::from(tenth) / 10.0;
        one.until(to);
        twin.until(to);
        if tenth % 20 == 0 {
            for simulation in [&mut one, &mut twin] {
                let now = simulation.now();
                let mark = MarkSample { now, sent_at: before(now, path.delay()) };
                simulation.sender_mut().controller_mut().on_ecn_ce(&mark);
            }
        }
        let answers = |simulation: &Simulation| {
            let controller = simulation.controller();
            (controller.window(), controller.pacing_rate(), controller.in_slow_start())
        };
        assert_eq!(answers(&one), answers(&twin), "equal histories give equal answers: {path:?}, {to} s");
    }
}

/// RFC 8085 §3.1: who goes on losing sends less.
fn check_losses(factory: &dyn ControllerFactory, path: LosslessPath) {
    let mut simulation = path.under(factory);
    let sent_until = |simulation: &mut Simulation, seconds: f64| {
        let before = simulation.sender().sent();
        simulation.until(seconds);
        simulation.sender().sent() - before
    };
    sent_until(&mut simulation, 4.0);
    let calm = sent_until(&mut simulation, 6.0);
    simulation.bottleneck_mut().set_loss(0.3);
    sent_until(&mut simulation, 12.0);
    let lossy = sent_until(&mut simulation, 14.0);
    let floor = minimum_window(DATAGRAM) as f64 * 2.0 / path.delay().as_secs_f64() * 2.0;
    assert!(
        (lossy as f64) < (calm as f64 * 0.8).max(floor),
        "{lossy} bytes in two seconds though three in ten packets are lost, {calm} before: {path:?}"
    );
}

/// RFC 9002 §7.6.2: a path that delivers nothing for long leaves two datagrams, and is used again when it is back.
fn check_an_outage(factory: &dyn ControllerFactory, path: LosslessPath) {
    let mut simulation = path.under(factory);
    simulation.until(3.0);
    simulation.bottleneck_mut().set_loss(1.0);
    simulation.until(9.0);
    simulation.bottleneck_mut().set_loss(0.0);
    simulation.until(25.0);
    assert!(simulation.sender().tally().collapses > 0, "no persistent congestion: {path:?}");
    let before = simulation.sender().delivered();
    simulation.until(30.0);
    assert!(simulation.sender().delivered() > before, "nothing is sent after an outage: {path:?}");
}

/// RFC 9002 §7.8: a window that is not used does not grow.
fn check_little_to_send(factory: &dyn ControllerFactory, path: LosslessPath) {
    let mut simulation = path.under(factory);
    simulation.sender_mut().set_offered(|now| now.as_nanos() / 40_000);
    simulation.until(20.0);
    let (window, most) = (simulation.controller().window(), 2 * initial_window(DATAGRAM));
    assert!(window <= most, "a window of {window} bytes for 25 kB a second, more than {most}: {path:?}");
}

/// RFC 9002 §7.8: silence is no success.
fn check_an_idle_time(factory: &dyn ControllerFactory, path: LosslessPath) {
    const PAUSE: Instant = Instant::from_nanos(3_000_000_000);
    const END: Instant = Instant::from_nanos(13_000_000_000);
    let mut simulation = path.under(factory);
    simulation.sender_mut().set_offered(|now| if (PAUSE..END).contains(&now) { 0 } else { u64::MAX });
    let mut largest = 0;
    // What was in flight is acknowledged within two seconds.
    while simulation.now() < PAUSE + Duration::from_secs(2) {
        simulation.step();
        largest = largest.max(simulation.controller().window());
    }
    while simulation.now() <= END {
        simulation.step();
    }
    let window = simulation.controller().window();
    assert!(
        window <= largest,
        "a window of {window} bytes after ten idle seconds, {largest} before: {path:?}"
    );
}

/// A reduction for a loss that was none is taken back.
fn check_undo(factory: &dyn ControllerFactory, path: LosslessPath) {
    let mut simulation = path.under(factory);
    simulation.until(5.0);
    let (now, sender) = (simulation.now(), simulation.sender_mut());
    let (bytes, sent_at) = (DATAGRAM, before(now, Duration::from_nanos(1)));
    let controller = sender.controller_mut();
    let window = controller.window();
    controller.on_packet_lost(&LostPacket {
        now,
        number: u64::MAX,
        bytes,
        sent_at,
        tx_in_flight: window as u64,
        lost: bytes as u64,
        total_delivered: window as u64,
        app_limited: false,
    });
    let (persistent, cause) = (Persistence::Passing, Cause::Congestion);
    let in_flight = window.saturating_sub(bytes);
    controller.on_lost(&LossSample { now, bytes, largest_sent_at: sent_at, persistent, cause, in_flight });
    controller.on_spurious(&SpuriousSample { now, bytes, sent_at, lost_at: now });
    let after = controller.window();
    assert!(after >= window, "{after} bytes are left of {window} after a loss that was none: {path:?}");
}

/// The time `earlier` than `now`.
fn before(now: Instant, earlier: Duration) -> Instant {
    Instant::ZERO + now.since(Instant::ZERO).saturating_sub(earlier)
}
