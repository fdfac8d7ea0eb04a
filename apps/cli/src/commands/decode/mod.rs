//! `hvq decode`: the frames of a capture, by path.

mod choice;

use crate::arguments::Format;
use crate::failure::{Exit, Failure, OrFail};
use crate::output::{Console, unwritten};
use choice::ChoiceArguments;
use clap::Args;
use hvq_decode::{Capture, CaptureError, KeyLog, Packet, PatientDecoder, Summary};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `hvq decode`.
#[derive(Debug, Args)]
pub(crate) struct DecodeArguments {
    /// The capture, a pcap or pcapng file; - is standard input
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// The TLS secrets, as --keylog writes them (by default what SSLKEYLOGFILE says)
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    #[command(flatten)]
    choice: ChoiceArguments,
    /// Print how much of what went over which path instead of each packet
    #[arg(long)]
    summary: bool,
    #[command(flatten)]
    format: Format,
}

/// The stream that lines go to.
type Output = BufWriter<io::StdoutLock<'static>>;

/// Decodes the whole capture.
pub(crate) fn run(arguments: &DecodeArguments, console: Console) -> Result<(), Failure> {
    let keys = keys(arguments, console)?;
    let name = arguments.capture.display();
    let damaged = |error: CaptureError| {
        let failed: Result<(), _> = Err(error);
        failed.or_fail(Exit::Usage, || format!("the capture {name}")).expect_err("it is an error")
    };
    let mut capture = Capture::open(open(&arguments.capture)?).map_err(damaged)?;
    let mut decoder = PatientDecoder::new(keys);
    let mut report = Report::new(arguments);
    let mut end = None;
    while end.is_none() {
        let packets = match capture.next_datagram() {
            Ok(Some(datagram)) => decoder.decode(datagram),
            // What was read up to there is worth its lines.
            last => {
                end = Some(last.map(|_| ()).map_err(damaged));
                decoder.finish()
            }
        };
        for packet in packets {
            if !report.take(packet)? {
                return Ok(());
            }
        }
    }
    let end = end.unwrap_or(Ok(()));
    report.finish()?;
    if report.shown == 0 && end.is_ok() {
        console.say(match report.start {
            Some(_) => "hvq: no packet is what was asked for (--path, --frames, --connection)",
            None => "hvq: there is no packet of QUIC in the capture",
        });
    }
    remarks(&report.summary, &capture, console);
    end
}

fn keys(arguments: &DecodeArguments, console: Console) -> Result<KeyLog, Failure> {
    let from_environment = || std::env::var_os("SSLKEYLOGFILE").filter(|value| !value.is_empty());
    let Some(path) = arguments.keys.clone().or_else(|| from_environment().map(PathBuf::from)) else {
        console.say("hvq: warning: without --keys only Initial packets can be opened");
        return Ok(KeyLog::default());
    };
    let read = std::fs::read(&path);
    let text = read.or_fail(Exit::Usage, || format!("cannot read the key log {}", path.display()))?;
    let keys = KeyLog::read(&String::from_utf8_lossy(&text));
    if keys.is_empty() {
        console.say(format!("hvq: warning: {} holds no secrets of TLS 1.3", path.display()));
    }
    Ok(keys)
}

fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin().lock())));
    }
    let file = File::open(path);
    let file = file.or_fail(Exit::Usage, || format!("cannot read the capture {}", path.display()))?;
    Ok(Box::new(BufReader::new(file)))
}

/// The report that is printed.
struct Report<'a> {
    arguments: &'a DecodeArguments,
    output: Output,
    summary: Summary,
    /// Packets that were asked for.
    shown: u64,
    /// The time at which the first packet was captured.
    start: Option<Duration>,
}

impl<'a> Report<'a> {
    fn new(arguments: &'a DecodeArguments) -> Self {
        let output = BufWriter::new(io::stdout().lock());
        Self { arguments, output, summary: Summary::default(), shown: 0, start: None }
    }

    /// Takes note of a packet, and prints it if it was asked for; whether anybody still reads.
    fn take(&mut self, packet: Packet) -> Result<bool, Failure> {
        let start = *self.start.get_or_insert(packet.at);
        let Some(packet) = self.arguments.choice.choose(packet) else { return Ok(true) };
        self.summary.add(&packet);
        self.shown += 1;
        if self.arguments.summary {
            return Ok(true);
        }
        let line = if self.arguments.format.json {
            hvq_decode::json(&packet).to_string()
        } else {
            hvq_decode::describe(&packet, start)
        };
        self.print(&line)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        if self.arguments.summary {
            let lines = if self.arguments.format.json {
                self.summary.json().iter().map(ToString::to_string).collect()
            } else {
                self.summary.text().lines().map(str::to_owned).collect::<Vec<_>>()
            };
            for line in lines {
                if !self.print(&line)? {
                    return Ok(());
                }
            }
        }
        match self.output.flush() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(unwritten(error)),
            _ => Ok(()),
        }
    }

    /// Prints a line; false if the reader has had enough, as `head` has.
    fn print(&mut self, line: &str) -> Result<bool, Failure> {
        match writeln!(self.output, "{line}") {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(unwritten(error)),
        }
    }
}

/// Says on standard error what is missing, and why.
fn remarks<R: Read>(summary: &Summary, capture: &Capture<R>, console: Console) {
    let say = |count: u64, what: &str| {
        if count > 0 {
            console.say(format!("hvq: {count} {what}"));
        }
    };
    for (problem, count) in summary.problems() {
        say(count, &format!("packets: {problem}"));
    }
    let skipped = capture.skipped();
    say(skipped.cut, "datagrams were captured in part: capture with a larger snapshot length (tcpdump -s 0)");
    say(skipped.fragments, "fragments of IP packets were passed over");
    let unknown = format!(
        "records have link type {}, which is not known here (known: Ethernet, Linux cooked, loopback, raw IP)",
        skipped.unknown_link
    );
    say(skipped.unknown_links, &unknown);
}
