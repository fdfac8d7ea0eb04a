//! Time and CPU time of this process.

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The cost of a span of time, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// On the clock.
    pub elapsed: f64,
    /// CPU time of the process outside of the kernel.
    pub user: f64,
    /// CPU time of the process in the kernel.
    pub system: f64,
}

impl Usage {
    /// CPU time in and outside of the kernel.
    pub fn cpu(&self) -> f64 {
        self.user + self.system
    }
}

/// Measures a span of time from its making on.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    started: Instant,
    user: Duration,
    system: Duration,
}

impl Meter {
    /// Begins now.
    pub fn start() -> Result<Self> {
        let (user, system) = cpu_time()?;
        Ok(Self { started: Instant::now(), user, system })
    }

    /// Returns the one of the two that began first.
    pub fn earlier(self, other: Self) -> Self {
        if self.started <= other.started { self } else { other }
    }

    /// Returns the cost until now.
    pub fn stop(&self) -> Result<Usage> {
        let elapsed = self.started.elapsed().as_secs_f64();
        let (user, system) = cpu_time()?;
        let since = |now: Duration, then| now.saturating_sub(then).as_secs_f64();
        Ok(Usage { elapsed, user: since(user, self.user), system: since(system, self.system) })
    }
}

/// CPU time of all threads since the process began, outside of the kernel and in it (getrusage).
fn cpu_time() -> Result<(Duration, Duration)> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok((duration(usage.user_time()), duration(usage.system_time())))
}

/// Bytes of memory that this process occupies (proc(5), VmRSS).
pub fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes =
        line.and_then(|line| line.trim().strip_suffix(" kB")).context("the system tells no VmRSS")?;
    Ok(kibibytes.trim().parse::<u64>()? * 1024)
}

/// Keeps this process on `core`, if there is such a core; the smaller machine goes without.
pub fn pin(core: usize) {
    let mut cores = CpuSet::new();
    if cores.set(core).and_then(|()| sched_setaffinity(Pid::from_raw(0), &cores)).is_err() {
        eprintln!("bench: this process cannot be kept on core {core}");
    }
}

fn duration(time: TimeVal) -> Duration {
    let micros = time.tv_sec().saturating_mul(1_000_000).saturating_add(time.tv_usec());
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn work_is_counted_as_cpu_time_and_sleep_is_not() {
        let meter = Meter::start().unwrap();
        while meter.started.elapsed() < Duration::from_millis(100) {
            black_box(0);
        }
        let busy = meter.stop().unwrap();
        assert!(busy.cpu() > 0.005, "{busy:?}");
        let meter = Meter::start().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let asleep = meter.stop().unwrap();
        assert!(asleep.elapsed >= 0.1 && asleep.cpu() < busy.elapsed, "{asleep:?}");
    }
}
