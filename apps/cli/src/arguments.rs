//! The command line.

use crate::commands::decode::DecodeArguments;
use crate::commands::emulate::EmulateArguments;
use crate::commands::gateway::GatewayArguments;
use crate::commands::get::GetArguments;
#[cfg(target_os = "linux")]
use crate::commands::inside::InsideArguments;
use crate::commands::lab::LabArguments;
use crate::commands::manual::{CompletionsArguments, ManualArguments};
#[cfg(unix)]
use crate::commands::paths::PathsArguments;
use crate::commands::proxy::ProxyArguments;
#[cfg(target_os = "linux")]
use crate::commands::run::RunArguments;
use crate::commands::serve::ServeArguments;
#[cfg(target_os = "linux")]
use crate::commands::tunnel::TunnelArguments;
#[cfg(target_os = "linux")]
use crate::commands::up::{DownArguments, UpArguments};
#[cfg(feature = "video")]
use crate::commands::video::VideoArguments;
use crate::failure::{Exit, Failure};
use crate::output::{Console, ResultFormat, unwritten};
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use hvq_live::command::demo::DemoArguments;
use std::ffi::OsString;
use std::process::ExitCode;

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed while running, 2 wrong arguments or configuration, \
                          3 the connection failed, 4 TLS or the certificate, 22 HTTP error status (with --fail), \
                          28 too late, 130 and 143 ended by SIGINT or SIGTERM before all was done.";

/// HTTP/3 over multipath QUIC, for channels that each excel in one thing.
#[derive(Debug, Parser)]
#[command(name = "hvq", version, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// Say nothing but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// The filter of the log on standard error, such as hvq=debug (by default that in RUST_LOG, or warnings)
    #[arg(long, global = true, value_name = "FILTER")]
    pub(crate) log: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command to run.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve files, or the objects of pages, over HTTP/3
    Serve(Box<ServeArguments>),
    /// Fetch URLs over HTTP/3, over one or several paths
    Get(Box<GetArguments>),
    /// Take HTTP/3 over multipath QUIC in front of origins such as nginx
    Gateway(Box<GatewayArguments>),
    /// Carry what local programs ask for to a gateway, over all channels (HTTP, HTTPS and SOCKS5 proxy)
    Proxy(Box<ProxyArguments>),
    /// Show the paths of the proxies and tunnels that run: state, rate, delay, loss, bytes, price, budget
    #[cfg(unix)]
    Paths(Box<PathsArguments>),
    /// Put emulated channels between UDP programs
    Emulate(Box<EmulateArguments>),
    /// Run a command in a network of its own, behind emulated channels
    #[cfg(target_os = "linux")]
    Run(Box<RunArguments>),
    /// Carry IP packets over all channels to a gateway
    #[cfg(target_os = "linux")]
    Tunnel(Box<TunnelArguments>),
    /// Bring up a tunnel for this machine from one file, client or server, and leave the system as it was at the end
    #[cfg(target_os = "linux")]
    Up(UpArguments),
    /// End such a tunnel, and undo what it left if it was killed
    #[cfg(target_os = "linux")]
    Down(DownArguments),
    /// The first process of such a network; nothing to call by hand
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Inside(InsideArguments),
    /// Load real pages over two emulated channels, compare schedulers, and write a report
    Demo(Box<DemoArguments>),
    /// Run experiments in virtual time
    Lab(Box<LabArguments>),
    /// Send and receive real-time video in layers, over one or several paths
    #[cfg(feature = "video")]
    #[command(alias = "svc")]
    Video(Box<VideoArguments>),
    /// Show the frames of a capture, by path
    Decode(Box<DecodeArguments>),
    /// Print a script with which a shell completes commands and flags
    Completions(CompletionsArguments),
    /// Write the pages of the manual
    Manual(ManualArguments),
}

/// The format of results: for people, or for programs.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Format {
    /// Print results as JSON on standard output, one object a line
    #[arg(long)]
    pub(crate) json: bool,
}

impl Format {
    /// The format that they ask for.
    pub(crate) fn results(self) -> ResultFormat {
        if self.json { ResultFormat::Json } else { ResultFormat::Text }
    }
}

/// The reason for which there is no command to run: an error, or a text that was asked for.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The arguments make no sense.
    Wrong(Failure),
    /// The help or the version was asked for.
    Text(clap::Error),
}

impl Arguments {
    /// The verbosity on standard error that they ask for.
    pub(crate) fn console(&self) -> Console {
        match (self.quiet, self.verbose) {
            (true, _) => Console::Quiet,
            (false, 0) => Console::Normal,
            (false, _) => Console::Verbose,
        }
    }

    /// Reads the command line, the name of the program first.
    pub(crate) fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, Refusal> {
        Self::try_parse_from(arguments).map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Refusal::Text(error),
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                Refusal::Wrong(Failure::new(Exit::Usage, "no command was given (see hvq --help)"))
            }
            _ => Refusal::Wrong(Failure::new(Exit::Usage, one_line(&error))),
        })
    }
}

/// Returns clap's message, which has a paragraph, in a line.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let problem = text.split("\n\nUsage:").next().unwrap_or(&text);
    let problem = problem.split("\n\nFor more information").next().unwrap_or(problem);
    let problem = problem.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{} (see --help)", problem.trim_start_matches("error: "))
}

impl Refusal {
    /// Says it, and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Wrong(failure) => {
                failure.report();
                failure.exit().into()
            }
            Self::Text(text) => match text.print() {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    unwritten(error).report();
                    Exit::Runtime.into()
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn wrong(line: &str) -> String {
        match Arguments::read(line.split(' ').map(OsString::from)) {
            Err(Refusal::Wrong(failure)) => {
                assert_eq!(failure.exit(), Exit::Usage, "{line}");
                failure.line()
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn wrong_arguments_are_named_in_one_line() {
        for (line, part) in [
            ("hvq", "no command"),
            ("hvq fly", "fly"),
            ("hvq get", "URL"),
            ("hvq get --colour https://a", "--colour"),
            ("hvq get --scheduler shortest https://a", "hvc, hvc-duplicate, min-rtt"),
            ("hvq get --congestion bbr9 https://a", "bbr9"),
            ("hvq get --path a=127.0.0.1,congestion=bbr9 https://a", "bbr9"),
            ("hvq get --versions v3 https://a", "v1, v2"),
            ("hvq serve --retry often --self-signed a", "always, busy, never"),
            ("hvq get --cc bbr9 https://a", "bbr9"),
            ("hvq get --max-time soon https://a", "such as"),
            ("hvq get --path 127.0.0.1 https://a", "NAME="),
            ("hvq serve --root . --page p05 --self-signed a", "cannot be used with"),
            ("hvq -q -v get https://a", "cannot be used with"),
            ("hvq emulate", "--channel"),
            ("hvq run", "COMMAND"),
            ("hvq run --steer warp -- a", "best-pkt-size"),
            ("hvq run --direct --mptcp -- a", "cannot be used with"),
            ("hvq run --scheduler hvc --steer asap -- a", "cannot be used with"),
            ("hvq run --mtu 1000 -- a", "1280"),
            ("hvq run --embb rate=mahimahi: -- a", "mahimahi:PATH"),
            ("hvq tunnel connect", "URL"),
            ("hvq tunnel serve --route 10.0.0.0/33 --self-signed a", "10.0.0.0/8"),
            ("hvq demo --embb XX-Y", "XX-Y"),
            ("hvq demo --schemes warp", "warp"),
            ("hvq gateway --listen here", "here"),
            ("hvq gateway --origin ftp://a", "h2c://"),
            ("hvq gateway --allow example.org", "HOST:PORT"),
            ("hvq gateway --origin http://a --root .", "cannot be used with"),
            ("hvq proxy", "--gateway"),
            ("hvq proxy --gateway a:b", "HOST:PORT"),
            ("hvq proxy --gateway a --path 127.0.0.1", "NAME="),
            ("hvq lab", "no command"),
            ("hvq lab controllers --controllers bbr9", "bbr9"),
            ("hvq lab controllers --loss 2", "--loss"),
            ("hvq lab controllers --trace XX-Y", "XX-Y"),
            ("hvq lab pages --schemes warp", "warp"),
            ("hvq lab pages --think 20", "--think"),
            ("hvq lab pages --deployment moon", "moon"),
            ("hvq lab video --schemes warp", "warp"),
            ("hvq lab outages --policies warp", "warp"),
            ("hvq lab chaos --policies warp", "warp"),
            ("hvq lab chaos --events moon", "down-up"),
            ("hvq lab outages --cell 1 --cells 2", "cannot be used with"),
            ("hvq lab live moon", "moon"),
            ("hvq lab live web --arms warp", "warp"),
            ("hvq lab live web --repetitions 0", "--repetitions"),
            ("hvq video send", "FILE"),
            ("hvq video send test --size 1x1", "640x360"),
            ("hvq video send test --kbit 1,2", "--kbit"),
            ("hvq video receive --wait soon", "adaptive"),
        ] {
            let said = wrong(line);
            assert!(said.contains(part) && !said.contains('\n'), "{line}: {said}");
        }
    }

    #[test]
    fn values_that_mean_nothing_are_refused() {
        for (line, part) in [
            ("hvq get -X CONNECT https://a", "tunnel"),
            ("hvq get --priority u=9 https://a", "0 to 7"),
            ("hvq get --priority ((( https://a", "u=1"),
            ("hvq get --path-keep-alive 0s https://a", "above zero"),
            ("hvq get --path-keep-alive-limit 5m https://a", "--path-keep-alive <DURATION>"),
            ("hvq get --rotate-every 0s https://a", "above zero"),
            ("hvq serve --self-signed a --page p05 --wait-scale nan", "from 0 to 1000"),
            ("hvq serve --self-signed a --page p05 --size-scale inf", "from 0 to 1000"),
            ("hvq serve --self-signed a --max-requests 0", "0"),
            ("hvq decode a --frames streams", "stream_data_blocked"),
            ("hvq run --outside=0 -- true", "1..=65535"),
            ("hvq video receive --rtp-out udp:127.0.0.1:0", "5004"),
            ("hvq tunnel connect https://a --device a/b", "letters"),
            ("hvq tunnel serve --device averyveryverylongname --self-signed a", "1 to 15"),
        ] {
            let said = wrong(line);
            assert!(said.contains(part) && !said.contains('\n'), "{line}: {said}");
        }
    }

    #[test]
    fn help_is_no_error() {
        for line in ["hvq --help", "hvq get -h", "hvq --version", "hvq help demo"] {
            let refusal = Arguments::read(line.split(' ').map(OsString::from)).unwrap_err();
            assert!(matches!(refusal, Refusal::Text(_)), "{line}");
        }
    }
}
