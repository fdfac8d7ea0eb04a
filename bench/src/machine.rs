//! The machine and the versions with which was measured.

use serde::Serialize;
use std::fs;

/// The versions that were compiled in.
const LOCK: &str = include_str!("../Cargo.lock");

/// Load per core above which the machine counts as busy.
const BUSY: f64 = 0.75;

/// The machine and the programs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// The system's kernel.
    pub kernel: String,
    /// The load average of the last minute before the run; `None` where the system does not say.
    pub load: Option<f64>,
    /// Packages that are compared and their versions.
    pub versions: Vec<String>,
}

impl Machine {
    /// The machine as it is now.
    pub fn now() -> Self {
        let information = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Self {
            processor: model.map_or("unknown processor", |(_, model)| model).to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            load: load(),
            versions: ["hvq", "quinn", "noq", "quiche", "s2n-quic"]
                .iter()
                .filter_map(|name| version(name))
                .collect(),
        }
    }

    /// Returns the reason for which the figures may be wrong, if others use the machine too.
    pub fn warning(&self) -> Option<String> {
        let load = self.load?;
        (load > BUSY * self.cores as f64).then(|| {
            format!(
                "load {load:.2} on {} cores before the run: others use them too, so the figures are rough, the ratios less so",
                self.cores
            )
        })
    }
}

fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// The name of a package with its version.
fn version(name: &str) -> Option<String> {
    let (_, rest) = LOCK.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    rest.split_once('"').map(|(version, _)| format!("{name} {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_lock_file() {
        assert!(version("quinn").unwrap().starts_with("quinn 0.11."));
        assert!(version("quiche").unwrap().starts_with("quiche 0."));
        assert_eq!(version("no-such-package"), None);
    }

    #[test]
    fn a_busy_machine_is_told_from_a_quiet_one() {
        let mut machine = Machine { cores: 2, load: Some(1.4), ..Machine::now() };
        assert_eq!(machine.warning(), None);
        machine.load = Some(1.6);
        assert!(machine.warning().unwrap().contains("1.60"));
    }
}
