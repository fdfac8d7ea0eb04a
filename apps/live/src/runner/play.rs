//! One case between two programs.

use crate::case::{Arrangement, Case};
use crate::check::Evidence;
use crate::network::RelayNetwork;
use crate::network::record::{RelayRecords, write_capture};
use crate::program::{Ending, Program, Sockets};
use crate::stage::Stage;
use crate::trace::Trace;
use anyhow::{Context, Result, ensure};
use hvq_decode::KeyLog;
use std::ffi::OsString;
use std::fs::File;
use std::io::BufWriter;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// The time for which the last packets may be on their way.
const GOODBYE: Duration = Duration::from_millis(300);
/// The last lines that a program said are shown up to so many bytes.
const LAST_WORDS: usize = 300;
/// The ports of servers, and how many are tried.
const FIRST_PORT: u16 = 12_000;
const LAST_PORT: u16 = 32_000;
const PORTS: usize = 1000;

/// The next port to try, counted from the first.
static PORT: AtomicU16 = AtomicU16::new(0);

/// The outcome of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum CaseOutcome {
    /// The case went as it should.
    Passed,
    /// One of the sides does not know the case.
    Unsupported,
    /// The case failed, for this reason.
    Failed(String),
}

/// Plays `case` between `client` and `server`.
pub(crate) fn play(
    case: &Case,
    [client, server]: [&Program; 2],
    seed: u64,
    keep: Option<&Path>,
) -> CaseOutcome {
    let played = Stage::set(case, seed).and_then(|stage| {
        let result = on(&stage, case, [client, server], seed);
        let result = result.map_err(|error| error.context(last_words(&stage)));
        if let Some(folder) = keep {
            let name = format!("{}-{}-{}", case.name, client.name, server.name);
            let kept = stage.keep();
            move_folder(&kept, &folder.join(name))?;
        }
        result
    });
    match played {
        Ok(Ending::Success) => CaseOutcome::Passed,
        Ok(Ending::Unsupported) => CaseOutcome::Unsupported,
        Err(error) => CaseOutcome::Failed(format!("{error:#}").replace('\n', " ")),
    }
}

fn on(stage: &Stage, case: &Case, [client, server]: [&Program; 2], seed: u64) -> Result<Ending> {
    let wanted = if case.arrangement == Arrangement::TwoAddresses { 2 } else { 1 };
    let sockets = if server.sockets == Sockets::One { 1 } else { wanted };
    let addresses = free_addresses(home(case.arrangement), sockets)?;
    let behind: Vec<_> = addresses.iter().copied().cycle().take(wanted).collect();
    let network = RelayNetwork::start(&case.condition, &behind, seed).context("the network")?;
    let join = |addresses: &[SocketAddr]| {
        let texts: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        OsString::from(texts.join(","))
    };
    let mut variables = vec![
        ("ROLE", OsString::from("server")),
        ("TESTCASE", case.testcase[1].into()),
        ("WWW", stage.path("www").into()),
        ("CERTS", stage.path("certs").into()),
        ("LISTEN", join(&addresses)),
    ];
    if wanted > 1 {
        variables.push(("PREFERRED_ADDRESS", join(&network.fronts[1..])));
    }
    let mut serving = server.start(&variables, &stage.path("server"))?;
    if serving.wait_for_ports(&addresses).context("the server")? == Ending::Unsupported {
        network.stop();
        return Ok(Ending::Unsupported);
    }
    let urls: Vec<_> =
        stage.files.iter().map(|name| format!("https://{}/{name}", network.fronts[0])).collect();
    let variables = [
        ("ROLE", OsString::from("client")),
        ("TESTCASE", case.testcase[0].into()),
        ("CASE", case.name.into()),
        ("DOWNLOADS", stage.path("downloads").into()),
        ("CERTS", stage.path("certs").into()),
        ("REQUESTS", urls.join(" ").into()),
    ];
    let mut asking = client.start(&variables, &stage.path("client"))?;
    let ended = asking.wait(case.limit).context("the client");
    std::thread::sleep(GOODBYE);
    let recording = network.stop();
    drop(serving);
    write(stage, &recording)?;
    if ended? == Ending::Unsupported {
        return Ok(Ending::Unsupported);
    }
    (case.check)(&evidence(stage, &recording))?;
    Ok(Ending::Success)
}

/// Returns `count` addresses of this host that nobody has. Their ports are below those that systems give out by
/// themselves, so that no socket of another case comes in between.
///
/// # Errors
/// There are none.
pub(crate) fn free_addresses(home: IpAddr, count: usize) -> Result<Vec<SocketAddr>> {
    let ports = std::iter::repeat_with(|| PORT.fetch_add(1, Ordering::Relaxed)).take(PORTS);
    let free = ports.map(|port| SocketAddr::new(home, FIRST_PORT + port % LAST_PORT.abs_diff(FIRST_PORT)));
    let addresses: Vec<_> = free.filter(|address| UdpSocket::bind(address).is_ok()).take(count).collect();
    ensure!(addresses.len() == count, "no free ports");
    Ok(addresses)
}

/// The address of both ends.
fn home(arrangement: Arrangement) -> IpAddr {
    match arrangement {
        Arrangement::Ipv6 => Ipv6Addr::LOCALHOST.into(),
        _ => Ipv4Addr::LOCALHOST.into(),
    }
}

fn evidence(stage: &Stage, recording: &RelayRecords) -> Evidence {
    // Either side may have kept the secrets.
    let logs = ["client", "server"].map(|side| stage.path(side).join("keys.log"));
    let text: String = logs.iter().filter_map(|log| std::fs::read_to_string(log).ok()).collect();
    let keys = KeyLog::read(&text);
    Evidence {
        left: Trace::read(&recording.left, keys.clone()),
        right: Trace::read(&recording.right, keys),
        offered: stage.path("www"),
        received: stage.path("downloads"),
        files: stage.files.clone(),
    }
}

/// Captures of both sides.
fn write(stage: &Stage, recording: &RelayRecords) -> Result<()> {
    for (name, records) in [("left.pcap", &recording.left), ("right.pcap", &recording.right)] {
        write_capture(records, &mut BufWriter::new(File::create(stage.path(name))?))?;
    }
    Ok(())
}

/// Returns the last words of the programs on standard error.
fn last_words(stage: &Stage) -> String {
    let of = |side: &str| {
        let text = std::fs::read_to_string(stage.path(side).join("stderr.txt")).unwrap_or_default();
        let start = text.len().saturating_sub(LAST_WORDS);
        let start = (start..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        let words = text[start..].trim().to_owned();
        if words.is_empty() { words } else { format!("{side}: {words}; ") }
    };
    format!("{}{}", of("client"), of("server"))
}

fn move_folder(from: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent)?;
    }
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    std::fs::rename(from, to).with_context(|| format!("cannot move {} to {}", from.display(), to.display()))
}
