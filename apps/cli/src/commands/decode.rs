//! `hvq decode`: the frames of a capture, by path.

use crate::arguments::Format;
use crate::failure::{Exit, Failure, OrFail};
use crate::output::{Console, unwritten};
use clap::Args;
use hvq::PathId;
use hvq_decode::report::{Extent, Lines, Reader, Report};
use hvq_decode::{Capture, CaptureError, Choice, KeyLog, PatientDecoder, Summary, kind};
use hvq_program::transport::from_environment;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};

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

/// The choice of packets and frames that are shown.
#[derive(Debug, Args)]
struct ChoiceArguments {
    /// Only packets of this path; may be repeated
    #[arg(long = "path", value_name = "NUMBER")]
    paths: Vec<u32>,
    /// Only frames of these kinds, such as stream,path_ack, and packets that hold any
    #[arg(long, value_name = "KIND,…", value_delimiter = ',', value_parser = kind)]
    frames: Vec<String>,
    /// Only this connection, counted from 0
    #[arg(long, value_name = "NUMBER")]
    connection: Option<usize>,
}

impl DecodeArguments {
    fn report(&self) -> Report<BufWriter<io::StdoutLock<'static>>> {
        let choice = Choice {
            paths: self.choice.paths.iter().copied().map(PathId).collect(),
            frames: self.choice.frames.clone(),
            connection: self.choice.connection,
        };
        let extent = if self.summary { Extent::Summary } else { Extent::Packets };
        let lines = if self.format.json { Lines::Json } else { Lines::Text };
        Report::new(choice, extent, lines, BufWriter::new(io::stdout().lock()))
    }
}

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
    let mut report = arguments.report();
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
            if report.take(packet).map_err(unwritten)? == Reader::HasEnough {
                return Ok(());
            }
        }
    }
    let end = end.unwrap_or(Ok(()));
    report.finish().map_err(unwritten)?;
    if report.shown() == 0 && end.is_ok() {
        console.say(match report.has_seen_packets() {
            true => "hvq: no packet is what was asked for (--path, --frames, --connection)",
            false => "hvq: there is no packet of QUIC in the capture",
        });
    }
    remarks(report.summary(), &capture, console);
    end
}

fn keys(arguments: &DecodeArguments, console: Console) -> Result<KeyLog, Failure> {
    let Some(path) = arguments.keys.clone().or_else(|| from_environment("SSLKEYLOGFILE")) else {
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
