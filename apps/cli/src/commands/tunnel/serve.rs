//! The end of tunnels that serves them.

use super::TokenArguments;
use crate::commands::serve::{IdentityArguments, identity};
use crate::failure::{Exit, Failure, OrFail};
use crate::output::Console;
use crate::signals::Signals;
use crate::tls;
use clap::Args;
use hvq::{ChannelOptions, EarlyData, ServerConfig};
use hvq_emulation::tun::device::TunDevice;
use hvq_emulation::tun::namespace::Namespace;
use hvq_emulation::tun::wiring::{self, End};
use hvq_program::arguments::TransportArguments;
use hvq_program::listen::{self, SocketFacts};
use hvq_tunnel::{AsyncDevice, MTU, Prefix, Server, ServerOptions};
use std::net::SocketAddr;
use std::sync::Arc;

/// The network of tunnels, 100.64.200.0/24: not one of those of `hvq run`, in which it may be tried.
const NETWORK: u8 = 200;

/// Arguments of `hvq tunnel serve`.
#[derive(Debug, Args)]
pub(super) struct TunnelServeArguments {
    /// The address to listen on; may be repeated (by default [::]:4433, or the addresses of the channels)
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Vec<SocketAddr>,
    /// A listening address that belongs to a channel, and what is known of it; may be repeated
    #[arg(long, value_name = "NAME=ADDRESS[:PORT][,rate=…,delay=…,dscp=…]")]
    channel: Vec<ChannelOptions>,
    #[command(flatten)]
    identity: IdentityArguments,
    #[command(flatten)]
    tokens: TokenArguments,
    /// The network to which packets may go; may be repeated; none by default
    #[arg(long, value_name = "ADDRESS/BITS")]
    route: Vec<Prefix>,
    /// The name of the TUN device
    #[arg(long, value_name = "NAME", default_value = "hvq0", value_parser = super::device)]
    device: String,
    /// Take TCP flows as packets only, from addresses of the tunnels: no host sees the address of this machine in their place
    #[arg(long)]
    no_tcp_lane: bool,
    #[command(flatten)]
    transport: TransportArguments,
}

/// Serves tunnels until it is told to stop.
pub(super) fn run(arguments: &TunnelServeArguments, console: Console) -> Result<(), Failure> {
    let network = End::far(NETWORK);
    let options =
        ServerOptions::new(arguments.tokens.read()?, arguments.route.clone(), (network.v4, network.v6))
            .map_err(|error| Failure::new(Exit::Usage, error.to_string()))?
            .with_tcp_lane(super::lane(arguments.no_tcp_lane));
    let here = Namespace::current()?;
    let device = TunDevice::offloading(&here, &arguments.device).or_fail(Exit::Runtime, || {
        format!("cannot make the device {} (this needs root, or the capability NET_ADMIN)", arguments.device)
    })?;
    let lines = wiring::addresses(&arguments.device, network, MTU);
    wiring::apply(&here, &lines).or_fail(Exit::Runtime, || "cannot set up the device".to_owned())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(serve(arguments, options, device, console));
    runtime.shutdown_background();
    result
}

async fn serve(
    arguments: &TunnelServeArguments,
    options: ServerOptions,
    device: TunDevice,
    console: Console,
) -> Result<(), Failure> {
    let logs = arguments.transport.logs()?;
    let mut signals = Signals::new()?;
    let (identity, publication) = identity(&arguments.identity)?;
    let tls = tls::server(identity, &arguments.transport.secrecy(), EarlyData::Off)?;
    let config = |facts: SocketFacts| {
        let mut transport = arguments.transport.config();
        transport.set_channels(facts.hints).streams_mut().send_buffer = super::SEND_BUFFER;
        ServerConfig::new(tls.clone(), Arc::new(logs.watch(transport)))
    };
    let endpoint = listen::bind(&arguments.listen, &arguments.channel, config)?;
    let bound = endpoint.local_addrs();
    let bound = bound.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    publication.publish()?;
    console.say(format!("tunnels on {bound} (UDP) come out of {}", arguments.device));
    let server = Server::new(options, AsyncDevice::new(device)?);
    tokio::select! {
        result = server.run(&endpoint) => result?,
        _ = signals.next() => {}
    }
    endpoint.close(hvq_h3::Code::H3_NO_ERROR.value(), b"");
    logs.finish(console);
    Ok(())
}
