//! A copy of the repository in which one crate has all its mutants, and the compiler's word on which of them compile.

use crate::catalogue::Mutant;
use crate::results::Outcome;
use crate::rewrite::{Region, rewrite};
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The text of the module that each crate gets.
const SWITCH: &str = include_str!("switch.rs");
/// The attribute before the first line of the crate: lints have no news here.
const ALLOW: &str =
    "#![allow(warnings, clippy::all, arithmetic_overflow, unconditional_panic, overflowing_literals)] ";
/// Rounds of compiling until nothing is left that does not compile.
const ROUNDS: usize = 30;

/// A copy of the repository.
#[derive(Debug)]
pub struct Scratch {
    root: PathBuf,
    /// The copy.
    pub tree: PathBuf,
    target: PathBuf,
}

/// A program of tests.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Program {
    /// The file to run.
    pub path: PathBuf,
    /// The folder to run it in.
    pub folder: PathBuf,
    /// The name of its crate or file.
    pub name: String,
}

/// Mutants that have no switch in the build, by reason.
#[derive(Default, Debug, Serialize, Deserialize)]
pub struct Dropped {
    /// Nothing at their place can be switched: constants, chains of `let`.
    pub unswitchable: BTreeSet<u32>,
    /// They do not compile.
    pub unviable: BTreeSet<u32>,
}

impl Dropped {
    /// The outcome of a mutant that has no switch.
    pub fn outcome(&self, number: u32) -> Option<Outcome> {
        let unviable = self.unviable.contains(&number).then_some(Outcome::Unviable);
        unviable.or_else(|| self.unswitchable.contains(&number).then_some(Outcome::Unswitchable))
    }
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    message: Option<Diagnostic>,
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    message: String,
    code: Option<Code>,
    spans: Vec<Span>,
    rendered: Option<String>,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    byte_start: usize,
    byte_end: usize,
    is_primary: bool,
    #[serde(default)]
    expansion: Option<Box<Expansion>>,
}

#[derive(Deserialize)]
struct Expansion {
    span: Span,
}

impl Scratch {
    /// A copy of what git knows of the repository at `root`, below its folder for build results. Files that did not change keep
    /// their times, so that little is compiled again.
    ///
    /// # Errors
    ///
    /// If a file cannot be copied.
    pub fn new(root: &Path, place: &Path) -> Result<Self> {
        let scratch = Self { root: root.to_owned(), tree: place.join("tree"), target: place.join("build") };
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()?;
        for name in String::from_utf8(listed.stdout)?.split('\0').filter(|name| !name.is_empty()) {
            let from = root.join(name);
            if from.is_file() {
                scratch.write(Path::new(name), &fs::read(from)?)?;
            }
        }
        let (link, boringssl) = (scratch.tree.join(".boringssl"), root.join(".boringssl"));
        if let (false, Ok(to)) = (link.exists(), fs::canonicalize(boringssl)) {
            std::os::unix::fs::symlink(to, link)?;
        }
        Ok(scratch)
    }

    fn write(&self, name: &Path, content: &[u8]) -> Result<()> {
        let path = self.tree.join(name);
        if fs::read(&path).is_ok_and(|old| old == content) {
            return Ok(());
        }
        fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        let executable = fs::metadata(self.root.join(name)).map(|metadata| metadata.permissions());
        fs::write(&path, content)?;
        if let Ok(permissions) = executable {
            fs::set_permissions(&path, permissions)?;
        }
        Ok(())
    }

    /// Puts all of `mutants` of the crate in `folder` into the copy, and takes out again those with which one of the `checks`
    /// (arguments of cargo) does not compile.
    ///
    /// # Errors
    ///
    /// If what is left does not compile, for a reason that is no mutant's.
    pub fn switch(&self, folder: &str, mutants: &[Mutant], checks: &[Vec<&str>]) -> Result<Dropped> {
        let library = Path::new(folder).join("src/lib.rs");
        self.write(&Path::new(folder).join("src/mutation.rs"), SWITCH.as_bytes())?;
        let mut found = (Dropped::default(), BTreeSet::new());
        for check in checks {
            let mut rounds = 1..=ROUNDS;
            while self.round(&library, mutants, check, &mut found)? {
                ensure!(rounds.next().is_some(), "still no end after {ROUNDS} rounds");
            }
        }
        Ok(found.0)
    }

    /// Compiles once; whether that has to be done again, with fewer mutants, or with functions that have to be constant.
    fn round(
        &self,
        library: &Path,
        mutants: &[Mutant],
        check: &[&str],
        (dropped, constants): &mut (Dropped, BTreeSet<String>),
    ) -> Result<bool> {
        let regions = self.render(library, mutants, dropped, constants)?;
        let messages = self.cargo(check)?;
        let said = messages.into_iter().filter_map(|message| message.message);
        let errors: Vec<Diagnostic> =
            said.filter(|said| said.level == "error" && !said.spans.is_empty()).collect();
        let (gone, left) = (dropped.unviable.len(), dropped.unswitchable.len());
        eprintln!(
            "mutants: cargo {}: {} errors; {gone} mutants do not compile, {left} cannot be switched",
            check.join(" "),
            errors.len()
        );
        let before = (gone, constants.len());
        for error in &errors {
            match constant(error) {
                Some(name) => drop(constants.insert(name)),
                None => dropped.unviable.extend(blamed(error, &regions)),
            }
        }
        if !errors.is_empty() && before == (dropped.unviable.len(), constants.len()) {
            let said: Vec<_> = errors.into_iter().filter_map(|error| error.rendered).collect();
            bail!("this is no mutant's error:\n{}", said.join("\n"));
        }
        Ok(before != (dropped.unviable.len(), constants.len()))
    }

    /// Writes all files of the crate that have mutants; the regions by file.
    fn render(
        &self,
        library: &Path,
        mutants: &[Mutant],
        dropped: &mut Dropped,
        constants: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, Vec<Region>>> {
        let mut files: BTreeMap<&str, Vec<&Mutant>> = BTreeMap::new();
        let crate_root = library.to_str().context("a name of letters")?;
        files.entry(crate_root).or_default();
        for file in rust_files(&self.root.join(library.parent().context("a folder")?))? {
            let name = file.strip_prefix(&self.root)?.to_str().context("a name of letters")?.to_owned();
            files.entry(String::leak(name)).or_default();
        }
        for mutant in mutants.iter().filter(|mutant| !dropped.unviable.contains(&mutant.number)) {
            files.entry(&mutant.key.file).or_default().push(mutant);
        }
        let mut regions = BTreeMap::new();
        for (file, here) in files {
            let source = fs::read_to_string(self.root.join(file))?;
            let mut new = rewrite(&source, &here, constants).with_context(|| file.to_owned())?;
            dropped.unswitchable.extend(new.left_out);
            if file == crate_root {
                new.source.insert_str(0, ALLOW);
                new.source.push_str("\n#[doc(hidden)]\npub mod mutation;\n");
            }
            self.write(Path::new(file), new.source.as_bytes())?;
            let shift = if file == crate_root { ALLOW.len() } else { 0 };
            for region in &mut new.regions {
                region.bytes = region.bytes.start + shift..region.bytes.end + shift;
            }
            regions.insert(file.to_owned(), new.regions);
        }
        Ok(regions)
    }

    /// Compiles the tests that `arguments` select.
    ///
    /// # Errors
    ///
    /// If they do not compile.
    pub fn programs(&self, arguments: &[&str]) -> Result<Vec<Program>> {
        let messages = self.cargo(&[&["test", "--no-run"], arguments].concat())?;
        let said: Vec<&str> = messages
            .iter()
            .filter_map(|message| message.message.as_ref())
            .filter(|said| said.level == "error")
            .filter_map(|said| said.rendered.as_deref())
            .collect();
        ensure!(said.is_empty(), "the tests do not compile:\n{}", said.join("\n"));
        let one = |message: Message| {
            let folder = message.manifest_path?.parent()?.to_owned();
            Some(Program { path: message.executable?, folder, name: message.target?.name })
        };
        let artifacts = messages.into_iter().filter(|message| message.reason == "compiler-artifact");
        Ok(artifacts.filter_map(one).filter(|program| is_test(&program.path)).collect())
    }

    fn cargo(&self, arguments: &[&str]) -> Result<Vec<Message>> {
        let output = Command::new("cargo")
            .args(arguments)
            .arg("--message-format=json")
            .arg("--target-dir")
            .arg(&self.target)
            .current_dir(&self.tree)
            .stderr(std::process::Stdio::inherit())
            .output()?;
        let lines = String::from_utf8(output.stdout)?;
        Ok(lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }
}

/// Returns whether cargo made a program of tests, not one that tests start.
fn is_test(path: &Path) -> bool {
    path.parent().and_then(Path::file_name) == Some(OsStr::new("deps"))
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension() == Some(OsStr::new("rs")) {
            files.push(path);
        }
    }
    Ok(files)
}

/// The function that has to be constant after all, if that is what `error` is about.
fn constant(error: &Diagnostic) -> Option<String> {
    (error.code.as_ref()?.code == "E0015").then_some(())?;
    let path = error.message.split('`').nth(1)?;
    let name = path.rsplit("::").next()?.to_owned();
    (name != "is").then_some(name)
}

/// The mutants that `error` is about: whose text it points at, or else the smallest expression that has some.
fn blamed(error: &Diagnostic, regions: &BTreeMap<String, Vec<Region>>) -> Vec<u32> {
    for primary in [true, false] {
        let spans = error.spans.iter().filter(|span| span.is_primary == primary);
        let exact: Vec<u32> = spans.flat_map(|span| hit(outer(span), regions, true)).collect();
        if !exact.is_empty() {
            return exact;
        }
    }
    let around: Vec<u32> = error.spans.iter().flat_map(|span| hit(outer(span), regions, false)).collect();
    around
}

/// The place in a file of a span that may be within a macro.
fn outer(span: &Span) -> &Span {
    span.expansion.as_ref().map_or(span, |expansion| outer(&expansion.span))
}

fn hit(span: &Span, regions: &BTreeMap<String, Vec<Region>>, exact: bool) -> Vec<u32> {
    let Some(regions) = regions.get(&span.file_name) else { return Vec::new() };
    let here = regions.iter().filter(|region| region.exact == exact);
    if exact {
        let meets =
            |region: &&Region| region.bytes.start < span.byte_end && span.byte_start < region.bytes.end;
        let within =
            |region: &&Region| region.bytes.start <= span.byte_start && span.byte_end <= region.bytes.end;
        let inside: Vec<&Region> = here.clone().filter(within).collect();
        let found = if inside.is_empty() { here.filter(meets).collect() } else { inside };
        return found.into_iter().flat_map(|region| region.mutants.clone()).collect();
    }
    let around =
        here.filter(|region| region.bytes.start <= span.byte_start && span.byte_end <= region.bytes.end);
    around.min_by_key(|region| region.bytes.len()).map_or_else(Vec::new, |region| region.mutants.clone())
}
