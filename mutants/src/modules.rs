//! The crates that are tried with their tests, and the modules that results are told by.

/// A crate whose mutants are compiled together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Package {
    /// The name of the package.
    pub name: &'static str,
    /// Its folder.
    pub folder: &'static str,
    /// Arguments of cargo that select its own tests.
    pub tests: &'static [&'static str],
    /// Arguments that select tests of other crates that use it, for `--deep`.
    pub others: &'static [&'static str],
}

/// The crates, in the order of what an attacker reaches first.
pub const PACKAGES: [Package; 4] = [
    Package {
        name: "hvq-transport",
        folder: "transport/core",
        tests: &["--package", "hvq-transport", "--lib"],
        others: &["--package", "hvq-tests"],
    },
    Package {
        name: "hvq-h3",
        folder: "transport/http3",
        tests: &["--package", "hvq-h3", "--lib", "--test", "end_to_end"],
        others: &["--package", "hvq-gateway", "--test", "end_to_end"],
    },
    Package {
        name: "hvq-gateway",
        folder: "apps/gateway",
        tests: &["--package", "hvq-gateway", "--lib", "--test", "end_to_end"],
        others: &[],
    },
    Package {
        name: "hvq-tunnel",
        folder: "apps/tunnel",
        tests: &["--package", "hvq-tunnel", "--lib"],
        others: &["--package", "hvq-gateway", "--test", "end_to_end"],
    },
];

/// A module that results are told by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Module {
    /// Its name in tables and for `--module`.
    pub name: &'static str,
    /// Its crate.
    pub package: &'static str,
    /// Beginnings of the names of its files.
    pub files: &'static [&'static str],
}

const fn core(name: &'static str, files: &'static [&'static str]) -> Module {
    Module { name, package: "hvq-transport", files }
}

/// The modules, in the order of what an attacker reaches first.
pub const MODULES: [Module; 13] = [
    core("wire", &["transport/core/src/wire/"]),
    core("crypto", &["transport/core/src/crypto/"]),
    core("path", &["transport/core/src/path/"]),
    core("endpoint", &["transport/core/src/endpoint/"]),
    core("memory", &["transport/core/src/memory.rs", "transport/core/src/slots/"]),
    core("space", &["transport/core/src/space/", "transport/core/src/ranges.rs"]),
    core("stream", &["transport/core/src/stream/"]),
    core("recovery", &["transport/core/src/recovery/"]),
    core("handshake", &["transport/core/src/handshake/"]),
    core("connection", &["transport/core/src/connection/", "transport/core/src/datagram.rs"]),
    Module { name: "http3", package: "hvq-h3", files: &["transport/http3/src/"] },
    Module { name: "gateway", package: "hvq-gateway", files: &["apps/gateway/src/"] },
    Module { name: "tunnel", package: "hvq-tunnel", files: &["apps/tunnel/src/"] },
];

impl Module {
    /// Returns whether `file` belongs to the module.
    pub fn contains(&self, file: &str) -> bool {
        self.files.iter().any(|start| file.starts_with(start))
    }

    /// The place in [`MODULES`] of the module that `file` belongs to.
    pub fn index_of(file: &str) -> Option<usize> {
        MODULES.iter().position(|module| module.contains(file))
    }

    /// The module that `file` belongs to.
    pub fn of(file: &str) -> Option<&'static Self> {
        MODULES.iter().find(|module| module.contains(file))
    }
}
