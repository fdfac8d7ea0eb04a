//! Dependencies of every build (attacks.md J10): the lock files hold all of them, from one registry, and deny.toml
//! allows them. `make supply-chain` asks `cargo deny` too, which knows advisories.

use crate::Finding;
use crate::edges::Manifest;
use crate::tree::File;
use std::path::Path;
use std::process::Command;
use toml::{Table, Value};

/// The registry from which packages may come.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// The policy.
const POLICY: &str = "deny.toml";

/// Workspaces whose lock file is not there, out of step with their crates or those that they use, or names a source that it
/// may not, and crates in the lock of the
/// workspace at the root that the policy bans.
pub(crate) fn locks(files: &[File], manifests: &[Manifest]) -> Vec<Finding> {
    let roots: Vec<&File> = files.iter().filter(|file| is_workspace(file)).collect();
    let folders: Vec<&str> = roots.iter().map(|root| folder(&root.path)).collect();
    let mut findings: Vec<Finding> =
        roots.iter().flat_map(|root| lock(root, files, manifests, &folders)).collect();
    let policy = table(files.iter().find(|file| file.path == POLICY));
    if let Some(lock) = files.iter().find(|file| file.path == "Cargo.lock") {
        let found = banned(&policy, &packages(&table(Some(lock))));
        findings.extend(found.into_iter().map(|problem| Finding::new(lock, 0, problem)));
    }
    findings
}

/// Problems with packages that the policy bans. Its `wrappers` may depend on one, and nobody else.
fn banned(policy: &Value, packages: &[Value]) -> Vec<String> {
    let uses = |package: &Value, name: &str| {
        let entries = strings(package, &["dependencies"]);
        entries.iter().any(|entry| entry.split(' ').next() == Some(name))
    };
    let bans = policy.get("bans").and_then(|bans| bans.get("deny")).and_then(Value::as_array);
    let mut problems = Vec::new();
    for ban in bans.into_iter().flatten() {
        let name = ban.as_str().unwrap_or_else(|| text(ban, "crate"));
        let wrappers = strings(ban, &["wrappers"]);
        if !packages.iter().any(|package| text(package, "name") == name) {
            continue;
        }
        if wrappers.is_empty() {
            problems.push(format!("{name} is banned in {POLICY}"));
            continue;
        }
        let users =
            packages.iter().filter(|package| uses(package, name)).map(|package| text(package, "name"));
        let others = users.filter(|user| !wrappers.iter().any(|wrapper| wrapper == user));
        problems.extend(others.map(|user| format!("{user} uses {name}, which is banned in {POLICY}")));
    }
    problems
}

fn is_workspace(file: &File) -> bool {
    file.path.ends_with("Cargo.toml") && file.text.lines().any(|line| line.trim() == "[workspace]")
}

fn folder(manifest: &str) -> &str {
    manifest.trim_end_matches("Cargo.toml")
}

/// The lock file beside the manifest `root` against the manifests of the crates that it is for. Workspaces are in `folders`.
fn lock(root: &File, files: &[File], manifests: &[Manifest], folders: &[&str]) -> Vec<Finding> {
    let folder = folder(&root.path);
    let Some(lock) = files.iter().find(|file| file.path == format!("{folder}Cargo.lock")) else {
        return vec![Finding::new(root, 0, "there is no Cargo.lock beside it")];
    };
    let packages = packages(&table(Some(lock)));
    let mut problems: Vec<String> =
        packages.iter().filter_map(|package| foreign(package, manifests)).collect();
    for manifest in manifests {
        // A package of the registry may have the name that a crate here stands in for.
        let locked = packages
            .iter()
            .find(|package| text(package, "name") == manifest.name() && text(package, "source").is_empty());
        let own = nearest(manifest, folders) == Some(folder);
        if locked.is_none() && !own {
            continue;
        }
        let entries = locked.map(|package| strings(package, &["dependencies"])).unwrap_or_default();
        let names: Vec<&str> = entries.iter().filter_map(|entry| entry.split(' ').next()).collect();
        // The lock of a nested workspace has no dependencies of the tests of other crates.
        let wanted = if own { manifest.packages() } else { manifest.required() };
        let missing = wanted.iter().filter(|wanted| !names.contains(&wanted.as_str()));
        let extra = names.iter().filter(|name| own && !wanted.iter().any(|wanted| wanted == *name));
        problems.extend(missing.map(|name| format!("{} uses {name}, which is not locked", manifest.name())));
        problems.extend(extra.map(|name| format!("{} does not use {name} any more", manifest.name())));
    }
    problems.into_iter().map(|problem| Finding::new(lock, 0, problem)).collect()
}

/// The folder of the workspace that `manifest` belongs to: the nearest one.
fn nearest<'a>(manifest: &Manifest, folders: &[&'a str]) -> Option<&'a str> {
    let above = folders.iter().filter(|folder| manifest.path().starts_with(**folder));
    above.max_by_key(|folder| folder.len()).copied()
}

/// Returns a description of the problem with the origin of a package, if there is one.
fn foreign(package: &Value, manifests: &[Manifest]) -> Option<String> {
    let (name, source) = (text(package, "name"), text(package, "source"));
    if source == REGISTRY {
        return text(package, "checksum").is_empty().then(|| format!("{name} has no checksum"));
    }
    let own = source.is_empty() && manifests.iter().any(|manifest| manifest.name() == name);
    let place = if source.is_empty() { "outside of the repository" } else { source };
    (!own).then(|| format!("{name} comes from {place}"))
}

/// Packages whose licence the policy does not allow, of what cargo says (`cargo metadata`).
fn licences(metadata: &serde_json::Value, policy: &File) -> Vec<Finding> {
    let rules = table(Some(policy));
    let allowed = strings(&rules, &["licenses", "allow"]);
    let exceptions =
        rules.get("licenses").and_then(|rules| rules.get("exceptions")).and_then(Value::as_array);
    let except = |name: &str| {
        let entry = exceptions?.iter().find(|entry| text(entry, "crate") == name)?;
        Some([allowed.clone(), strings(entry, &["allow"])].concat())
    };
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let others = packages.iter().filter(|package| !package["source"].is_null());
    let refused = others.filter_map(|package| {
        let licence = package["license"].as_str().unwrap_or("of no name");
        let name = package["name"].as_str().unwrap_or_default();
        let allowed = except(name).unwrap_or_else(|| allowed.clone());
        (!is_allowed(licence, &allowed)).then(|| format!("{name} has the licence {licence}"))
    });
    refused.map(|problem| Finding::new(policy, 0, problem)).collect()
}

/// Returns true if the allowed licences satisfy an SPDX expression: OR before AND, parentheses, and `/` for OR as of
/// old.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    either(&mut rest, allowed) && rest.is_empty()
}

fn either(words: &mut &[&str], allowed: &[String]) -> bool {
    let mut holds = both(words, allowed);
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        holds |= both(words, allowed);
    }
    holds
}

fn both(words: &mut &[&str], allowed: &[String]) -> bool {
    let mut holds = one(words, allowed);
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        holds &= one(words, allowed);
    }
    holds
}

fn one(words: &mut &[&str], allowed: &[String]) -> bool {
    let (name, rest) = match **words {
        ["(", ref rest @ ..] => {
            *words = rest;
            let holds = either(words, allowed);
            let closed = matches!(**words, [")", ..]);
            *words = words.get(1..).unwrap_or_default();
            return holds && closed;
        }
        [licence, "WITH", exception, ref rest @ ..] => (format!("{licence} WITH {exception}"), rest),
        [licence, ref rest @ ..] => (licence.to_owned(), rest),
        [] => return false,
    };
    *words = rest;
    allowed.contains(&name)
}

fn table(file: Option<&File>) -> Value {
    let text = file.map(|file| file.text.as_str()).unwrap_or_default();
    Value::Table(text.parse::<Table>().unwrap_or_else(|error| panic!("{error}")))
}

fn packages(lock: &Value) -> Vec<Value> {
    lock.get("package").and_then(Value::as_array).cloned().unwrap_or_default()
}

fn text<'a>(package: &'a Value, key: &str) -> &'a str {
    package.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The strings of the list at `place`; of its tables those under `crate`.
fn strings(value: &Value, place: &[&str]) -> Vec<String> {
    let list = place.iter().try_fold(value, |value, key| value.get(key)).and_then(Value::as_array);
    let items = list.into_iter().flatten();
    items
        .filter_map(|item| item.as_str().or_else(|| item.get("crate")?.as_str()))
        .map(str::to_owned)
        .collect()
}

/// Returns cargo's metadata of the workspace at the root, without changing the lock or asking anybody; none where it
/// would have to ask for packages that builds of other crates take.
fn metadata() -> Option<serde_json::Value> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform"]);
    let output = command.arg(host()).current_dir(root).output().expect("cargo can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("because --locked was passed"), "Cargo.lock is out of step: {errors}");
    output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("it is JSON"))
}

/// The platform of this build, as rustc names it.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().expect("rustc can be started");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.lines().find_map(|line| line.strip_prefix("host: ")).expect("it says so").to_owned()
}

/// attacks.md J10.
#[test]
fn what_is_taken_from_elsewhere_is_locked_and_allowed() {
    let files = crate::tree::files();
    let mut findings = locks(&files, &crate::edges::manifests(&files));
    let policy = files.iter().find(|file| file.path == POLICY).expect("there is a policy");
    findings.extend(metadata().map(|metadata| licences(&metadata, policy)).unwrap_or_default());
    crate::report(findings);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edges::manifests;

    const MANIFEST: &str = "[workspace]\n[package]\nname = \"a\"\n[dependencies]\nb = \"1\"\n";

    fn problems(lock: &str, policy: &str) -> Vec<String> {
        let samples = [("Cargo.toml", MANIFEST), ("Cargo.lock", lock), (POLICY, policy)];
        let files = samples.map(|(path, text)| File::sample(path, text));
        locks(&files, &manifests(&files)).into_iter().map(|finding| finding.problem).collect()
    }

    /// The lock of a crate `a` with `dependencies`, and of a crate `b` with the lines `more`.
    fn sample(dependencies: &str, more: &str) -> String {
        format!(
            "[[package]]\nname = \"a\"\ndependencies = [{dependencies}]\n[[package]]\nname = \"b\"\n{more}"
        )
    }

    #[test]
    fn a_lock_holds_what_is_used_from_the_registry_and_nothing_banned() {
        let from = format!("source = \"{REGISTRY}\"\n");
        let sound = format!("{from}checksum = \"00\"\n");
        let in_step = sample("\"b\"", &sound);
        assert_eq!(problems(&in_step, ""), [""; 0]);
        assert_eq!(problems(&sample("", &sound), ""), ["a uses b, which is not locked"]);
        assert_eq!(problems(&sample("\"b\", \"c 1.0.0\"", &sound), ""), ["a does not use c any more"]);
        assert_eq!(problems(&sample("\"b\"", &from), ""), ["b has no checksum"]);
        let git = "source = \"git+https://example.org/b\"\n";
        assert_eq!(problems(&sample("\"b\"", git), ""), ["b comes from git+https://example.org/b"]);
        assert_eq!(problems(&sample("\"b\"", ""), ""), ["b comes from outside of the repository"]);
        let policy = "[bans]\ndeny = [{ crate = \"b\" }, \"c\"]";
        assert_eq!(problems(&in_step, policy), ["b is banned in deny.toml"]);
        let wrapped = |by: &str| format!("[bans]\ndeny = [{{ crate = \"b\", wrappers = [\"{by}\"] }}]");
        assert_eq!(problems(&in_step, &wrapped("a")), [""; 0]);
        assert_eq!(problems(&in_step, &wrapped("c")), ["a uses b, which is banned in deny.toml"]);
        let alone = [File::sample("deep/Cargo.toml", MANIFEST)];
        assert_eq!(locks(&alone, &manifests(&alone))[0].problem, "there is no Cargo.lock beside it");
    }

    #[test]
    fn a_nested_lock_holds_what_the_crates_of_the_project_use() {
        let library = "[package]\nname = \"hvq\"\n[dependencies]\nb = \"1\"\nd = { version = \"1\", optional = true }\n\
                       [dev-dependencies]\nc = \"1\"\n";
        let nested = "[workspace]\n[package]\nname = \"n\"\n[dependencies]\nhvq = { path = \"..\" }\n";
        let problems = |dependencies: &str| {
            let lock = format!(
                "[[package]]\nname = \"n\"\ndependencies = [\"hvq\"]\n\
                 [[package]]\nname = \"hvq\"\ndependencies = [{dependencies}]\n"
            );
            let samples =
                [("Cargo.toml", library), ("interop/Cargo.toml", nested), ("interop/Cargo.lock", &lock)];
            let files = samples.map(|(path, text)| File::sample(path, text));
            locks(&files, &manifests(&files)).into_iter().map(|finding| finding.problem).collect::<Vec<_>>()
        };
        assert_eq!(problems("\"b\""), [""; 0]);
        assert_eq!(problems(""), ["hvq uses b, which is not locked"]);
    }

    #[test]
    fn licences_are_allowed_as_their_expressions_have_it() {
        let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        for (expression, expected) in [
            ("MIT", true),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR GPL-3.0) AND ISC", true),
            ("MIT AND (GPL-3.0 OR LGPL-3.0)", false),
            ("GPL-3.0 AND GPL-2.0 OR ISC", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("Apache-2.0", false),
            ("(MIT", false),
            ("MIT ISC", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        }
        let metadata = serde_json::json!({ "packages": [
            { "name": "a", "source": null },
            { "name": "b", "source": REGISTRY, "license": "MIT" },
            { "name": "c", "source": REGISTRY },
            { "name": "d", "source": REGISTRY, "license": "MIT AND ISC" },
        ] });
        let policy = "[licenses]\nallow = [\"MIT\"]\nexceptions = [{ crate = \"d\", allow = [\"ISC\"] }]";
        let found = licences(&metadata, &File::sample(POLICY, policy));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].problem, "c has the licence of no name");
    }
}
