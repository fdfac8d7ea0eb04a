//! Resident memory of `hvq gateway` and `hvq serve` beside a crowd that asks for much and permits nothing to be sent, and after it
//! has gone: attacks.md K1 and K6. The long form (`make memory`) measures honest requests beside it, and writes a table.

use crate::memory::crowd::{Crowd, FILE};
use crate::memory::honest::Honest;
use crate::support::{Running, hvq};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::time::sleep;

mod crowd;
mod honest;

/// Bytes of memory that a client may cost which permits nothing, whatever it asks for.
const EACH: u64 = 2 << 20;
/// Bytes that a program may have beside a thousand of them.
const ALL: u64 = 512 << 20;
/// Within this time what a crowd took is given back to the system,
const RETURN: Duration = Duration::from_secs(60);
/// but for this much, in hundredths of what the program had before.
const LEFT: u64 = 120;
/// Honest requests may take so many times as long as without the crowd.
const SLOWER: f64 = 2.0;

/// The program that is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Program {
    /// `hvq gateway` with a folder of files.
    Gateway,
    /// `hvq gateway` in front of an origin.
    Origin,
    /// `hvq serve`.
    Serve,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Gateway => "`hvq gateway`, files",
            Self::Origin => "`hvq gateway`, an origin",
            Self::Serve => "`hvq serve`",
        }
    }
}

/// A program that runs, and its folder.
struct Fixture {
    running: Running,
    folder: tempfile::TempDir,
}

impl Fixture {
    async fn new(program: Program) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        fs::create_dir(file("www")).unwrap();
        fs::write(file("www/large"), vec![7; FILE]).unwrap();
        fs::write(file("www/small"), "a few bytes").unwrap();
        let certificate = file("chain.pem");
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        if program == Program::Serve {
            let running = Running::serve(&file("www"), &certificate, &[]);
            return Self { running, folder };
        }
        let source = match program {
            Program::Origin => ["--origin".to_owned(), format!("http://{}", crowd::origin().await)],
            _ => ["--root".to_owned(), text(file("www"))],
        };
        let mut command = hvq();
        command.args(["gateway", "--json", "--self-signed", "localhost", "--listen", "127.0.0.1:0"]);
        command.args(["--write-cert", &text(certificate)]).args(source);
        Self { running: Running::of(&mut command), folder }
    }

    fn chain(&self) -> Vec<u8> {
        fs::read(self.folder.path().join("chain.pem")).unwrap()
    }

    /// Bytes of memory that the program has now, and had at most since [`Fixture::begin`].
    fn memory(&self) -> Memory {
        let status = fs::read_to_string(format!("/proc/{}/status", self.running.id())).unwrap();
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
        };
        Memory { now: bytes("VmRSS:"), most: bytes("VmHWM:") }
    }

    /// Forgets how much it had at most.
    fn begin(&self) {
        // proc_pid_clear_refs(5).
        fs::write(format!("/proc/{}/clear_refs", self.running.id()), "5").unwrap();
    }

    /// Waits until the program has as much as it may keep, or for as long as it may take; what it has then.
    async fn settle(&self, before: u64) -> u64 {
        let start = Instant::now();
        loop {
            let now = self.memory().now;
            if now <= before * LEFT / 100 || start.elapsed() > RETURN {
                return now;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Resident bytes of a program.
struct Memory {
    now: u64,
    most: u64,
}

/// The memory and time that a crowd cost a program.
struct Cost {
    program: Program,
    count: usize,
    before: u64,
    most: u64,
    after: u64,
    /// The time until it had no more than that.
    took: Duration,
    /// Honest requests before and beside the crowd, on connections of their own and on one that stays.
    times: Option<[[honest::Times; 2]; 2]>,
}

impl Cost {
    /// Has a crowd of `count` at `program`, and as many `honest` requests before and beside it.
    async fn of(program: Program, count: usize, honest: usize) -> Self {
        let place = Fixture::new(program).await;
        let (address, chain) = (place.running.address(0), place.chain());
        let one = Honest::new(address, &chain).await;
        // Code, buffers, caches and threads that the first use brings about.
        one.measure(honest.max(20)).await;
        Crowd::come(1, address, &chain).await.go().await;
        let without = one.measure(honest).await;
        sleep(Duration::from_secs(1)).await;
        place.begin();
        let before = place.memory().now;
        let crowd = Crowd::come(count, address, &chain).await;
        sleep(Duration::from_secs(1)).await;
        let beside = one.measure(honest).await;
        let most = place.memory().most;
        crowd.go().await;
        let start = Instant::now();
        let after = place.settle(before).await;
        let times = (honest > 0).then_some([without, beside]);
        Self { program, count, before, most, after, took: start.elapsed(), times }
    }

    fn each(&self) -> u64 {
        self.most.saturating_sub(self.before) / self.count as u64
    }

    /// The bounds of memory that do not hold.
    fn broken(&self) -> Vec<String> {
        let all = self.count >= 1_000;
        let bounds = [
            (self.each() > EACH, format!("{} bytes each", self.each())),
            (all && self.most > ALL, format!("{} bytes in all", self.most)),
            (self.after > self.before * LEFT / 100, format!("{} bytes left of {}", self.after, self.before)),
        ];
        let broken = bounds.into_iter().filter(|(is_broken, _)| *is_broken);
        broken.map(|(_, what)| format!("{}, {} clients: {what}", self.program.name(), self.count)).collect()
    }

    /// The bounds of time that do not hold.
    fn late(&self) -> Vec<String> {
        let slower = self.ratios().into_iter().filter(|ratio| *ratio > SLOWER);
        slower
            .map(|ratio| format!("{}, {} clients: {ratio:.2} times as slow", self.program.name(), self.count))
            .collect()
    }

    /// The factors by which honest requests take longer: of medians, of both kinds.
    fn ratios(&self) -> Vec<f64> {
        let ratio = |[without, beside]: &[[honest::Times; 2]; 2], kind: usize| {
            beside[kind].median.as_secs_f64() / without[kind].median.as_secs_f64()
        };
        self.times.iter().flat_map(|times| [ratio(times, 0), ratio(times, 1)]).collect()
    }

    fn row(&self) -> String {
        let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
        let mut row = format!(
            "| {} | {} | {} | {} | {:.0} KiB | {} after {:.1} s |",
            self.program.name(),
            self.count,
            mib(self.before),
            mib(self.most),
            self.each() as f64 / 1024.0,
            mib(self.after),
            self.took.as_secs_f64(),
        );
        for kind in 0..2 {
            let [without, beside] =
                self.times.as_ref().map(|times| [&times[0][kind], &times[1][kind]]).unwrap();
            write!(row, " {without} | {beside} | {:.2} |", self.ratios()[kind]).unwrap();
        }
        row
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_permit_nothing_cost_little_resident_memory_and_give_it_back() {
    let (gateway, serve) = tokio::join!(Cost::of(Program::Gateway, 30, 0), Cost::of(Program::Serve, 30, 0));
    assert_eq!([gateway.broken(), serve.broken()].concat(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes, and a machine that does nothing else: make memory"]
async fn a_crowd_that_permits_nothing_is_bounded_in_memory_and_slows_nobody() {
    let mut table = "| program | clients | before | at most | each | left | new connection and request, alone: median / p99 | beside them | ratio of medians | request, alone: median / p99 | beside them | ratio of medians |\n\
                     | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        .to_owned();
    let mut broken = Vec::new();
    for program in [Program::Gateway, Program::Origin, Program::Serve] {
        for count in [1, 30, 1_000] {
            let cost = Cost::of(program, count, 500).await;
            println!("{}", cost.row());
            writeln!(table, "{}", cost.row()).unwrap();
            broken.extend(cost.broken().into_iter().chain(cost.late()));
        }
    }
    if let Ok(file) = std::env::var("HVQ_MEMORY_TABLE") {
        fs::write(file, &table).unwrap();
    }
    assert_eq!(broken, Vec::<String>::new(), "\n{table}");
}
