//! The tests of a build: which mutants each of them asks for, how long it takes, and what it says about a mutant.

use crate::choice::Choice;
use crate::scratch::Program;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// A test may take so many times as long as without a mutant,
const PATIENCE: u32 = 5;
/// and so much longer, for the machine may be busy.
const GRACE: Duration = Duration::from_secs(6);
/// The time of a test of which nothing is known yet.
const UNKNOWN: Duration = Duration::from_secs(300);
/// The bytes of address space that a test may ask for: a mutant may ask for endlessly many.
const ADDRESS_SPACE: u64 = 8 << 30;
/// The time between two looks at a process.
const LOOK: Duration = Duration::from_millis(2);

/// A test.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Test {
    /// Its program, as an index.
    pub program: usize,
    /// Its name within the program.
    pub name: String,
    /// The time that it takes without a mutant.
    pub time: Duration,
    /// The mutants that it asks for, ascending.
    pub reaches: Vec<u32>,
}

/// All tests of a build.
#[derive(Debug, Serialize, Deserialize)]
pub struct Suite {
    /// The programs, those of the crate itself first.
    pub programs: Vec<Program>,
    /// The tests.
    pub tests: Vec<Test>,
    /// Tests that fail without a mutant, and therefore prove nothing.
    pub failing: Vec<String>,
}

/// The verdict of some tests about a mutant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Word {
    /// All of them passed.
    Passed,
    /// This one failed.
    Failed(String),
    /// They had no end.
    TimedOut,
}

impl Suite {
    /// Runs every test of `programs` that `choice` names once by itself and records what it asks for, in files below `place`.
    ///
    /// # Errors
    ///
    /// If a program cannot be run.
    pub fn record(programs: Vec<Program>, place: &Path, choice: &Choice) -> Result<Self> {
        let mut tests = Vec::new();
        for (index, program) in programs.iter().enumerate() {
            let output = Command::new(&program.path)
                .args(["--list", "--format", "terse"])
                .current_dir(&program.folder)
                .output()
                .with_context(|| program.path.display().to_string())?;
            let listed = String::from_utf8(output.stdout)?;
            let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
            for name in names.filter(|name| choice.asks(name)) {
                tests.push(Test { program: index, name: name.into(), time: UNKNOWN, reaches: Vec::new() });
            }
        }
        fs::create_dir_all(place)?;
        let next = AtomicUsize::new(0);
        let known = each(choice.jobs, || {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Relaxed);
                let Some(test) = tests.get(index) else { return done };
                if index.is_multiple_of(200) {
                    eprintln!("mutants: recording, test {index} of {}", tests.len());
                }
                done.push((index, run_recorded(&programs, test, &place.join(index.to_string()))));
            }
        });
        let mut failing = Vec::new();
        for (index, outcome) in known.into_iter().flatten() {
            let test = &mut tests[index];
            match outcome? {
                Some((time, reaches)) => (test.time, test.reaches) = (time, reaches),
                None => failing.push(test.name.clone()),
            }
        }
        tests.retain(|test| test.time != UNKNOWN);
        Ok(Self { programs, tests, failing })
    }

    /// Lets `tests`, all of one program, play with a mutant.
    ///
    /// # Errors
    ///
    /// If the program cannot be run.
    pub fn ask(&self, tests: &[&Test], mutant: u32) -> Result<Word> {
        let Some(first) = tests.first() else { return Ok(Word::Passed) };
        let time: Duration = tests.iter().map(|test| test.time).sum();
        let names = tests.iter().map(|test| test.name.as_str());
        let mut command = command(&self.programs[first.program], names);
        command.env("HVQ_MUTANT", mutant.to_string());
        let (ended, said) = wait(&mut command, time * PATIENCE + GRACE)?;
        Ok(match ended {
            None => Word::TimedOut,
            Some(true) => Word::Passed,
            Some(false) => {
                let failed =
                    said.lines().find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
                // Without a word of the harness the process was ended, which no test asks for.
                Word::Failed(failed.unwrap_or(&first.name).to_owned())
            }
        })
    }
}

/// Runs `work` on as many threads as there are `jobs`.
pub fn each<T: Send>(jobs: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(&work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("the work does not panic")).collect()
    })
}

fn command<'a>(program: &Program, names: impl Iterator<Item = &'a str>) -> Command {
    let mut command = Command::new("prlimit");
    command.arg(format!("--as={ADDRESS_SPACE}")).arg("--core=0").arg(&program.path);
    command.arg("--exact").args(names).args(["--test-threads", "1"]);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
    // A long test of random worlds plays fewer of them.
    command.env("HVQ_SEEDS", "300");
    command.env_remove("HVQ_MUTANT").env_remove("HVQ_MUTANTS_RECORD");
    // A group of its own: what a test starts ends with it.
    command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    command
}

type Recorded = Option<(Duration, Vec<u32>)>;

fn run_recorded(programs: &[Program], test: &Test, file: &Path) -> Result<Recorded> {
    if file.exists() {
        fs::remove_file(file)?;
    }
    let mut command = command(&programs[test.program], [test.name.as_str()].into_iter());
    command.env("HVQ_MUTANTS_RECORD", file);
    let begun = Instant::now();
    let (ended, _) = wait(&mut command, UNKNOWN)?;
    let time = begun.elapsed();
    let seen = fs::read(file).unwrap_or_default();
    let reaches =
        seen.iter().zip(0_u32..).filter(|(byte, _)| **byte == 1).map(|(_, number)| number).collect();
    Ok((ended == Some(true)).then_some((time, reaches)))
}

/// Waits for a process: whether it succeeded, if it ended in time, and what it said.
fn wait(command: &mut Command, limit: Duration) -> Result<(Option<bool>, String)> {
    let mut child = command.spawn().context("prlimit (util-linux) cannot be started")?;
    let mut pipe = child.stdout.take().context("it was asked for")?;
    let reader = thread::spawn(move || {
        let mut said = Vec::new();
        pipe.read_to_end(&mut said).map(|_| String::from_utf8_lossy(&said).into_owned())
    });
    let until = Instant::now() + limit;
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status.success());
        }
        if Instant::now() > until {
            break None;
        }
        thread::sleep(LOOK);
    };
    end(&mut child)?;
    let said = reader.join().expect("reading does not panic");
    Ok((ended, said.unwrap_or_default()))
}

/// Ends the process and what it started.
fn end(child: &mut Child) -> Result<()> {
    let group = format!("-{}", child.id());
    let status = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status()?;
    ensure!(status.code().is_some(), "kill was ended");
    child.wait()?;
    Ok(())
}
