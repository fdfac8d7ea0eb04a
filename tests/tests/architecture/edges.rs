//! The permitted dependencies between crates.

use crate::Finding;
use crate::tree::File;
use toml::{Table, Value};

/// The crates of the project in the order of their layers, and the crates that each uses. A crate uses only crates above it in
/// this table, and every edge of the table is in use: so it is the graph, and ARCHITECTURE.md draws it.
const EDGES: [(&str, &[&str]); 19] = [
    ("hvq-scheduler", &[]),
    ("hvq-transport", &["hvq-scheduler"]),
    ("hvq-qlog", &["hvq-scheduler", "hvq-transport"]),
    ("hvq", &["hvq-scheduler", "hvq-transport", "hvq-qlog"]),
    ("hvq-h3", &["hvq"]),
    ("hvq-quinn", &["hvq"]),
    ("hvq-web-transport", &["hvq"]),
    ("hvq-ffi", &["hvq-scheduler", "hvq-transport", "hvq-qlog"]),
    // Applications: first what knows no QUIC or no sockets, then services, then experiments and commands.
    ("hvq-emulation", &[]),
    ("hvq-testing", &["hvq", "hvq-emulation"]),
    ("hvq-decode", &["hvq-transport", "hvq-qlog"]),
    ("hvq-program", &["hvq-scheduler", "hvq", "hvq-h3", "hvq-emulation"]),
    ("hvq-video", &["hvq", "hvq-emulation", "hvq-program"]),
    ("hvq-lab", &["hvq-scheduler", "hvq-transport", "hvq-emulation", "hvq-program", "hvq-video"]),
    ("hvq-tunnel", &["hvq-scheduler", "hvq", "hvq-h3", "hvq-emulation", "hvq-program"]),
    ("hvq-gateway", &["hvq-scheduler", "hvq", "hvq-h3", "hvq-emulation", "hvq-program", "hvq-tunnel"]),
    (
        "hvq-live",
        &[
            "hvq-scheduler",
            "hvq-transport",
            "hvq",
            "hvq-h3",
            "hvq-emulation",
            "hvq-decode",
            "hvq-program",
            "hvq-lab",
        ],
    ),
    (
        "hvq-cli",
        &[
            "hvq-scheduler",
            "hvq",
            "hvq-h3",
            "hvq-emulation",
            "hvq-decode",
            "hvq-program",
            "hvq-video",
            "hvq-lab",
            "hvq-tunnel",
            "hvq-gateway",
            "hvq-live",
        ],
    ),
    (
        "hvq-tests",
        &["hvq-scheduler", "hvq-transport", "hvq", "hvq-h3", "hvq-emulation", "hvq-decode", "hvq-lab"],
    ),
];

/// The crates, at most, beside those of `NAMED_BY_OTHERS`: one that nobody uses alone is a module of its user.
const MOST_CRATES: usize = 16;

/// Crates that are packages of their own because programs of others put them in the place of one that they know, or only their tests
/// use them.
const NAMED_BY_OTHERS: [&str; 3] = ["hvq-quinn", "hvq-web-transport", "hvq-testing"];

/// The crates that the nested workspaces may use: what users of the library have, programs for quinn among them (interop/moq), and emulated
/// channels.
const LIBRARIES: &[&str] =
    &["hvq-scheduler", "hvq-transport", "hvq-qlog", "hvq", "hvq-h3", "hvq-quinn", "hvq-emulation"];

/// Crates outside of the project that may not be used, not even by tests: the core and the lab do no I/O and have no runtime.
const FOREIGN: [(&str, &[&str]); 2] = [("hvq-transport", RUNTIMES), ("hvq-lab", RUNTIMES)];

const RUNTIMES: &[&str] =
    &["tokio", "socket2", "quinn-udp", "mio", "async-std", "smol", "polling", "nix", "libc"];

/// Crates that use these only for a feature that is not on by default: without it they do no I/O.
const OPTIONAL: [(&str, &[&str]); 3] = [
    ("hvq-video", &["hvq", "hvq-emulation", "hvq-program", "tokio"]),
    ("hvq-lab", &["hvq-program", "clap", "indicatif"]),
    ("hvq-emulation", &["quinn-udp", "rustix", "socket2", "nix", "tokio"]),
];

/// Crates without dependencies, apart from what their tests use.
const INDEPENDENT: [&str; 1] = ["hvq-scheduler"];

/// Workspaces of their own: they use the libraries, and list their dependencies themselves.
const NESTED: [&str; 3] = ["interop/", "bench/", "mutants/"];

/// The manifest of a crate.
pub(crate) struct Manifest {
    file: File,
    table: Table,
}

/// The manifests of all crates, the nested workspaces included.
pub(crate) fn manifests(files: &[File]) -> Vec<Manifest> {
    let crates = files.iter().filter(|file| file.path.ends_with("Cargo.toml")).map(manifest);
    crates.filter(|manifest| manifest.table.contains_key("package")).collect()
}

fn manifest(file: &File) -> Manifest {
    let table = file.text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.path));
    Manifest { file: file.clone(), table }
}

/// The edges that are not allowed.
pub(crate) fn check(manifests: &[Manifest]) -> Vec<Finding> {
    manifests.iter().flat_map(|manifest| manifest.check()).chain(idle(manifests)).collect()
}

/// The edges of the table that no crate has: what is not used is not allowed either.
fn idle(manifests: &[Manifest]) -> Vec<Finding> {
    let find = |name: &str| manifests.iter().find(|manifest| manifest.name() == name);
    let mut findings = Vec::new();
    for (name, allowed) in EDGES {
        let Some(manifest) = find(name) else {
            let table = File::sample("tests/tests/architecture/edges.rs", "");
            findings.push(Finding::new(&table, 0, format!("there is no crate {name}")));
            continue;
        };
        let used = manifest.packages();
        let unused = allowed.iter().filter(|package| !used.iter().any(|used| used == *package));
        findings.extend(unused.map(|package| {
            manifest.finding(format!("{name} does not use {package}: take it out of the table of edges"))
        }));
    }
    findings
}

/// A dependency of a crate.
struct Dependency {
    /// The name of the package.
    package: String,
    /// The table that lists it: `dependencies`, `dev-dependencies` or `build-dependencies`.
    section: &'static str,
    /// Its description in the manifest.
    value: Value,
}

impl Manifest {
    fn check(&self) -> Vec<Finding> {
        let (name, nested) = (self.name(), self.is_nested());
        let row = EDGES.iter().find(|(known, _)| *known == name).map(|(_, allowed)| *allowed);
        let Some(allowed) = row.or(nested.then_some(LIBRARIES)) else {
            return vec![
                self.finding(format!("the crate {name} is not in the table of edges: say what it may use")),
            ];
        };
        let mut findings: Vec<Finding> = Vec::new();
        for dependency in self.dependencies() {
            let problem =
                problem(name, allowed, &dependency).or_else(|| (!nested).then(|| unlisted(&dependency))?);
            findings.extend(problem.map(|problem| self.finding(problem)));
        }
        let lints = self.table.get("lints").and_then(|lints| lints.get("workspace")).and_then(Value::as_bool);
        if !nested && lints != Some(true) {
            findings.push(
                self.finding("the lints of the workspace do not apply: [lints] workspace = true".to_owned()),
            );
        }
        findings
    }

    /// The crate's name.
    pub(crate) fn name(&self) -> &str {
        self.table["package"].get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns its place, from the root of the repository.
    pub(crate) fn path(&self) -> &str {
        &self.file.path
    }

    /// Returns true if it is of a workspace of its own.
    pub(crate) fn is_nested(&self) -> bool {
        NESTED.iter().any(|folder| self.path().starts_with(folder))
    }

    /// The names of the packages that it depends on.
    pub(crate) fn packages(&self) -> Vec<String> {
        self.dependencies().into_iter().map(|dependency| dependency.package).collect()
    }

    /// The names of the packages without which others cannot use it: neither those of its tests nor optional ones.
    pub(crate) fn required(&self) -> Vec<String> {
        let is_optional = |value: &Value| value.get("optional").and_then(Value::as_bool) == Some(true);
        let all = self.dependencies().into_iter();
        let needed = all.filter(|it| it.section != "dev-dependencies" && !is_optional(&it.value));
        needed.map(|dependency| dependency.package).collect()
    }

    fn finding(&self, problem: String) -> Finding {
        Finding::new(&self.file, 0, problem)
    }

    /// All dependencies, those of single targets included.
    fn dependencies(&self) -> Vec<Dependency> {
        let targets = self.table.get("target").and_then(Value::as_table);
        let targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
        let mut found = Vec::new();
        for table in std::iter::once(&self.table).chain(targets) {
            for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
                let entries = table.get(section).and_then(Value::as_table).into_iter().flatten();
                found.extend(entries.map(|(key, value)| {
                    let renamed = value.get("package").and_then(Value::as_str);
                    Dependency { package: renamed.unwrap_or(key).to_owned(), section, value: value.clone() }
                }));
            }
        }
        found
    }
}

fn problem(name: &str, allowed: &[&str], dependency: &Dependency) -> Option<String> {
    let package = dependency.package.as_str();
    let own = package == "hvq" || package.starts_with("hvq-");
    if own && !allowed.contains(&package) {
        return Some(format!("{name} may not depend on {package}"));
    }
    if INDEPENDENT.contains(&name) && dependency.section != "dev-dependencies" {
        return Some(format!("{name} depends on nothing, not on {package} either"));
    }
    let optional = dependency.value.get("optional").and_then(Value::as_bool) == Some(true);
    let on_demand = OPTIONAL.iter().any(|(user, rare)| *user == name && rare.contains(&package));
    if on_demand && !optional && dependency.section == "dependencies" {
        return Some(format!("{name} may depend on {package} for a feature only: optional = true"));
    }
    let foreign =
        FOREIGN.iter().find(|(user, _)| *user == name).is_some_and(|(_, banned)| banned.contains(&package));
    foreign.then(|| format!("{name} may not depend on {package}: it does no I/O"))
}

/// Dependencies are listed once, in the root manifest.
fn unlisted(dependency: &Dependency) -> Option<String> {
    let inherits = dependency.value.get("workspace").and_then(Value::as_bool) == Some(true);
    (!inherits).then(|| format!("{}: list it in [workspace.dependencies] and inherit it", dependency.package))
}

#[cfg(test)]
fn problems(path: &str, text: &str) -> Vec<String> {
    let manifest = manifest(&File::sample(path, text));
    manifest.check().into_iter().map(|finding| finding.problem).collect()
}

#[cfg(test)]
fn sample(name: &str, rest: &str) -> String {
    format!("[package]\nname = \"{name}\"\n[lints]\nworkspace = true\n{rest}")
}

#[test]
fn a_dependency_on_a_crate_above_is_found() {
    let text = sample("hvq-transport", "[dev-dependencies]\nhvq = { workspace = true }");
    assert_eq!(problems("transport/core/Cargo.toml", &text), ["hvq-transport may not depend on hvq"]);
    let text = sample(
        "hvq-emulation",
        "[target.'cfg(unix)'.dependencies]\nq = { package = \"hvq\", workspace = true }",
    );
    assert_eq!(problems("apps/emulation/Cargo.toml", &text), ["hvq-emulation may not depend on hvq"]);
}

#[test]
fn every_edge_of_the_table_leads_upwards() {
    for (row, (name, allowed)) in EDGES.iter().enumerate() {
        let above = |package: &&str| EDGES[..row].iter().any(|(known, _)| *known == *package);
        let below: Vec<_> = allowed.iter().filter(|package| !above(package)).collect();
        assert!(below.is_empty(), "{name} uses {below:?}, which do not stand above it");
    }
}

#[test]
fn the_workspace_has_few_crates() {
    let counted = EDGES.iter().filter(|(name, _)| !NAMED_BY_OTHERS.contains(name)).count();
    assert!(counted <= MOST_CRATES, "{counted} crates: make one a module of the crate that uses it");
}

#[test]
fn an_edge_that_no_crate_has_is_found() {
    let text = sample("hvq-h3", "[dependencies]\nbytes.workspace = true");
    let found = idle(&[manifest(&File::sample("transport/http3/Cargo.toml", &text))]);
    let problem = "hvq-h3 does not use hvq: take it out of the table of edges";
    assert!(found.iter().any(|finding| finding.problem == problem), "{found:?}");
}

#[test]
fn sockets_of_video_are_for_a_feature() {
    let text = sample("hvq-video", "[dependencies]\nhvq.workspace = true");
    assert_eq!(
        problems("apps/video/Cargo.toml", &text),
        ["hvq-video may depend on hvq for a feature only: optional = true"]
    );
    let text = sample("hvq-video", "[dependencies]\nhvq = { workspace = true, optional = true }");
    assert_eq!(problems("apps/video/Cargo.toml", &text), [""; 0]);
}

#[test]
fn the_scheduler_depends_on_nothing_but_its_tests_may() {
    let text = sample(
        "hvq-scheduler",
        "[dependencies]\nlog.workspace = true\n[dev-dependencies]\nproptest.workspace = true",
    );
    assert_eq!(
        problems("scheduler/Cargo.toml", &text),
        ["hvq-scheduler depends on nothing, not on log either"]
    );
}

#[test]
fn a_runtime_or_a_socket_in_the_core_is_found() {
    let text = sample(
        "hvq-transport",
        "[dev-dependencies]\ntokio.workspace = true\n[dependencies]\nring.workspace = true",
    );
    assert_eq!(
        problems("transport/core/Cargo.toml", &text),
        ["hvq-transport may not depend on tokio: it does no I/O"]
    );
}

#[test]
fn nested_workspaces_use_libraries_only() {
    let text = "[package]\nname = \"interop-noq\"\n[dependencies]\nhvq-tests = { path = \"../../tests\" }\nnoq = \"1\"";
    assert_eq!(problems("interop/noq/Cargo.toml", text), ["interop-noq may not depend on hvq-tests"]);
}

#[test]
fn a_crate_that_nobody_placed_is_found() {
    let found = problems("apps/new/Cargo.toml", &sample("hvq-new", ""));
    assert_eq!(found, ["the crate hvq-new is not in the table of edges: say what it may use"]);
}

#[test]
fn a_version_beside_the_workspace_list_and_missing_lints_are_found() {
    let text = "[package]\nname = \"hvq-decode\"\n[dependencies]\nserde = \"1\"";
    assert_eq!(
        problems("apps/decode/Cargo.toml", text),
        [
            "serde: list it in [workspace.dependencies] and inherit it",
            "the lints of the workspace do not apply: [lints] workspace = true"
        ]
    );
}
