//! `hvq emulate`: emulated channels between UDP programs.

use crate::arguments::Format;
use crate::duration;
use crate::failure::{Exit, Failure, OrFail};
use crate::output::{self, Console};
use crate::signals::Signals;
use clap::Args;
use hvq_emulation::ChannelSpec;
use hvq_emulation::relay::{EmulatedChannel, Relay, RelayHandle};
use hvq_program::channels::{self, ChannelFigures};
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;

/// Arguments of `hvq emulate`.
#[derive(Debug, Args)]
pub(crate) struct EmulateArguments {
    /// A channel: programs that send to LISTEN reach UPSTREAM through it; may be repeated.
    ///
    /// SPEC is made of items such as urllc, MM-D, rtt=40ms, rate=60mbit, queue=800p, loss=1%, offset=30s,
    /// blackout=10s..12s, collapse=2s..4s/5%, detour=2s..3s/30ms, each with an optional up. or down. in front.
    #[arg(long, value_name = "NAME:LISTEN=UPSTREAM[,SPEC…]", required_unless_present = "listen")]
    channel: Vec<EmulatedChannel>,
    /// A single channel: where programs send to
    #[arg(long, value_name = "ADDRESS:PORT", requires = "upstream")]
    listen: Option<SocketAddr>,
    /// A single channel: where it ends
    #[arg(long, value_name = "ADDRESS:PORT", requires = "listen")]
    upstream: Option<SocketAddr>,
    /// A single channel: what it is like
    #[arg(long, value_name = "SPEC", requires = "listen")]
    spec: Option<ChannelSpec>,
    /// The seed of everything random
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Stop after so long (by default at Ctrl-C)
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    duration: Option<Duration>,
    #[command(flatten)]
    format: Format,
}

/// Runs the channels until it is told to stop, and prints what they did.
pub(crate) async fn run(arguments: Box<EmulateArguments>, console: Console) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let relays = start(&arguments)?;
    announce(&relays, arguments.format, console)?;
    let limit = arguments.duration.unwrap_or(Duration::MAX);
    // Whichever comes first, the channels end.
    let _over = tokio::time::timeout(limit, signals.next()).await;
    let mut figures = Vec::new();
    for (channel, relay) in relays {
        let elapsed = relay.elapsed();
        figures.push(ChannelFigures { name: channel.name, elapsed, statistics: relay.stop() });
    }
    match arguments.format.json {
        true => output::print(&channels::json(&figures).to_string()),
        false => output::print(&channels::table(&figures)),
    }
}

fn start(arguments: &EmulateArguments) -> Result<Vec<(EmulatedChannel, RelayHandle)>, Failure> {
    let mut channels = arguments.channel.clone();
    if let (Some(listen), Some(upstream)) = (arguments.listen, arguments.upstream) {
        let spec = arguments.spec.clone().unwrap_or_default();
        channels.push(EmulatedChannel { name: "channel".to_owned(), listen, upstream, spec });
    }
    if let Some(channel) = channels.iter().find(|channel| channel.listen == channel.upstream) {
        let text = format!("channel {} leads to where it begins, {}", channel.name, channel.listen);
        return Err(Failure::new(Exit::Usage, text));
    }
    let names: Vec<_> = channels.iter().map(|channel| &channel.name).collect();
    output::check_distinct("--channel", &names)?;
    let mut relays = Vec::new();
    for (channel, seed) in channels.into_iter().zip(arguments.seed..) {
        let relay = Relay::start(channel.listen, channel.upstream, channel.spec.clone(), seed);
        let relay =
            relay.or_fail(Exit::Usage, || format!("channel {} ({})", channel.name, channel.listen))?;
        relays.push((channel, relay));
    }
    Ok(relays)
}

fn announce(
    relays: &[(EmulatedChannel, RelayHandle)],
    format: Format,
    console: Console,
) -> Result<(), Failure> {
    if format.json {
        let listening = relays.iter().map(|(channel, relay)| {
            json!({ "name": channel.name, "listen": relay.local_addr(), "upstream": channel.upstream })
        });
        return output::print(&json!({ "listening": listening.collect::<Vec<_>>() }).to_string());
    }
    for (channel, relay) in relays {
        console.say(format!(
            "{}: {} to {}: {}",
            channel.name,
            relay.local_addr(),
            channel.upstream,
            channel.spec
        ));
    }
    Ok(())
}
