//! A gateway of which something breaks, and one that starts again.

use crate::operation::ask_admin;
use crate::setup::{Client, Fixture, get, within};
use hvq_gateway::Broken;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn a_driver_that_dies_is_told_at_once_and_by_the_health() {
    // K10. A tracer that fails is a bug in the driver's task.
    let tracer: hvq::trace::TracerFactory = Arc::new(|_| panic!("as a bug would"));
    let text = "admin = '127.0.0.1:0'\n[[host]]\nnames = ['*']\nfiles = 'DIR'\n";
    let mut place = Fixture::traced(text, Some(tracer)).await;
    let admin = place.gateway.admin_addr().unwrap();
    assert!(ask_admin(admin, "/health", "localhost").await.starts_with("HTTP/1.1 200"));
    let well = tokio::time::timeout(Duration::from_millis(100), place.gateway.attend()).await;
    assert!(well.is_err(), "nothing is broken: {well:?}");
    within(place.gateway.pulse().beat()).await;
    let remote = place.gateway.local_addrs()[0];
    let (trust, endpoint) = (place.trust(), hvq::Endpoint::client(&[]).unwrap());
    let client = Client::of(&endpoint, remote, &trust);
    let (broken, _refused) = tokio::join!(within(place.gateway.attend()), client);
    assert!(matches!(broken, Broken::Driver(0) | Broken::Accepting(0)), "{broken}");
    let health = ask_admin(admin, "/health", "localhost").await;
    assert!(health.starts_with("HTTP/1.1 503") && health.ends_with("broken\n"), "{health}");
    let beat = tokio::time::timeout(Duration::from_millis(100), place.gateway.pulse().beat()).await;
    assert!(beat.is_err(), "the watchdog is not fed any more");
    within(place.gateway.stop()).await;
}

#[tokio::test]
async fn a_gateway_that_stops_is_not_broken() {
    let place = Fixture::new("workers = 2\n[[host]]\nnames = ['*']\nfiles = 'DIR'\n").await;
    let pulse = place.gateway.pulse();
    let client = place.client().await;
    assert_eq!(client.status(get("/tokens")).await, 200);
    within(pulse.beat()).await;
    within(place.gateway.stop()).await;
    // Those who drain are fed, too.
    within(pulse.beat()).await;
}

#[tokio::test]
async fn keys_are_kept_and_a_file_that_others_read_is_refused_with_its_line() {
    let text = "persistent_keys = 'DIR/keys'\n[[host]]\nnames = ['*']\nfiles = 'DIR'\n";
    let mut place = Fixture::new(text).await;
    let made = std::fs::read(place.file("keys")).unwrap();
    assert_eq!(place.reload(text), Ok(Vec::new()));
    assert_eq!(place.client().await.status(get("/tokens")).await, 200);
    assert_eq!(std::fs::read(place.file("keys")).unwrap(), made);
    std::fs::write(place.file("keys"), "nonsense").unwrap();
    let wrong = place.reload(text).unwrap_err();
    assert!(wrong.contains("gateway.toml:3: persistent_keys: ") && wrong.contains("damaged"), "{wrong}");
}
