//! Notifications for systemd: the gateway is ready, it moves, and it stops (`sd_notify(3)`).

use crate::Pulse;
use sd_notify::NotifyState;

/// Tells that the gateway is ready and, if a watchdog waits for it (`WatchdogSec=`), from now on that it moves. Nothing
/// more is told once a driver hangs.
pub fn ready(pulse: Pulse) {
    tell(NotifyState::Ready);
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    // It goes on while the gateway stops, and ends with the program.
    tokio::spawn(async move {
        loop {
            pulse.beat().await;
            tell(NotifyState::Watchdog);
            tokio::time::sleep(limit / 3).await;
        }
    });
}

/// Tells that the gateway stops.
pub fn stopping() {
    tell(NotifyState::Stopping);
}

fn tell(state: NotifyState<'_>) {
    // Without a service manager there is nobody to tell.
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "the service manager cannot be told");
    }
}
