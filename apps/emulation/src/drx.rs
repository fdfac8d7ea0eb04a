//! Discontinuous reception: an idle device sleeps and wakes up now and then to see whether there is anything for it.

use std::time::Duration;

/// The two timers of RRC/DRX sleep (DChannel, NSDI 2023, §4.2.2). Only the downlink pays for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drx {
    /// The time without traffic after which the device falls asleep.
    pub idle: Duration,
    /// Asleep, it wakes up this often; above zero.
    pub cycle: Duration,
}

impl Drx {
    /// 5G mmWave: asleep after 30 ms, awake every 40 ms.
    pub const MMWAVE: Self = Self { idle: Duration::from_millis(30), cycle: Duration::from_millis(40) };
    /// 5G low-band: asleep after 100 ms, awake every 20 ms.
    pub const LOW_BAND: Self = Self { idle: Duration::from_millis(100), cycle: Duration::from_millis(20) };
}

/// The sleep state of the device: the time until which it is awake. It starts awake.
#[derive(Clone, Debug)]
pub(crate) struct Sleep {
    timers: Drx,
    awake_until: Duration,
}

impl Sleep {
    pub(crate) fn new(timers: Drx) -> Self {
        Self { timers, awake_until: timers.idle }
    }

    /// Returns the time at which the device can take a packet that arrives at `now`: at once, or at its next wake-up.
    pub(crate) fn ready_at(&self, now: Duration) -> Duration {
        let Some(asleep_for) = now.checked_sub(self.awake_until) else { return now };
        let cycle = self.timers.cycle.as_nanos().max(1);
        let into_the_cycle = asleep_for.as_nanos() % cycle;
        let wait = if into_the_cycle == 0 { 0 } else { cycle - into_the_cycle };
        now + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    /// Traffic at `at`, in either direction, keeps the device awake for another idle time.
    pub(crate) fn keep_awake(&mut self, at: Duration) {
        self.awake_until = self.awake_until.max(at.saturating_add(self.timers.idle));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    #[test]
    fn a_packet_that_arrives_into_the_sleep_waits_for_the_next_wake_up() {
        // mmWave: awake until 130, then awake for an instant at 170, 210, 250 …
        let mut sleep = Sleep::new(Drx::MMWAVE);
        sleep.keep_awake(ms(100));
        assert_eq!(sleep.ready_at(ms(120)), ms(120));
        assert_eq!(sleep.ready_at(ms(130)), ms(130));
        assert_eq!(sleep.ready_at(ms(150)), ms(170), "20 ms into the sleep: another 20 ms (NSDI §4.2.2)");
        assert_eq!(sleep.ready_at(ms(170)), ms(170));
        assert_eq!(sleep.ready_at(ms(171)), ms(210));
    }

    #[test]
    fn traffic_restarts_the_idle_timer() {
        let mut sleep = Sleep::new(Drx::LOW_BAND);
        sleep.keep_awake(ms(50));
        assert_eq!(sleep.ready_at(ms(149)), ms(149));
        assert_eq!(sleep.ready_at(ms(155)), ms(170));
    }
}
