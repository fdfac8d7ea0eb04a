//! The end of a tunnel that asks for it.

use super::TokenArguments;
use crate::failure::{Exit, Failure};
use crate::output::Console;
use crate::tls::{self, Resumption};
use clap::Args;
use hvq::ClientConfig;
use hvq_program::arguments::NameArguments;
use hvq_program::arguments::PathArguments;
use hvq_program::arguments::TransportArguments;
use hvq_program::arguments::TrustArguments;
use hvq_program::client::Target;
use hvq_tunnel::Prefix;
use hvq_tunnel::connect::{Packets, Tunnel};
use std::ffi::OsString;
use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::Arc;

/// Arguments of `hvq tunnel connect`.
#[derive(Debug, Args)]
pub(super) struct ConnectArguments {
    /// The server, such as https://gateway.example:4433
    #[arg(value_name = "URL")]
    url: String,
    #[command(flatten)]
    trust: TrustArguments,
    #[command(flatten)]
    tokens: TokenArguments,
    #[command(flatten)]
    names: NameArguments,
    #[command(flatten)]
    paths: PathArguments,
    /// Without a command: send packets to these networks through the tunnel; may be repeated
    #[arg(long, value_name = "ADDRESS/BITS", conflicts_with = "command")]
    route: Vec<Prefix>,
    /// Without a command: what the TUN device is called
    #[arg(long, value_name = "NAME", default_value = "hvq0", conflicts_with = "command", value_parser = super::device)]
    device: String,
    /// With a command: the name server that it asks, through the tunnel; may be repeated
    #[arg(long, value_name = "ADDRESS", requires = "command")]
    resolver: Vec<IpAddr>,
    /// Carry TCP flows as packets, even where the server takes each on a stream of its own
    #[arg(long)]
    no_tcp_lane: bool,
    #[command(flatten)]
    transport: TransportArguments,
    /// A command whose only network is the tunnel; it needs no root where users may make namespaces
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl ConnectArguments {
    fn packets(&self) -> Packets {
        match self.command.is_empty() {
            true => Packets::Machine { device: self.device.clone(), routes: self.route.clone() },
            false => Packets::Command { command: self.command.clone(), resolvers: self.resolver.clone() },
        }
    }
}

/// Opens the tunnel and sends packets through it, until the command ends, or until it is told to stop.
pub(super) fn run(arguments: &ConnectArguments, console: Console) -> Result<ExitCode, Failure> {
    let token = arguments.tokens.read()?.into_iter().next();
    if token.is_none() && !arguments.trust.has_identity() {
        let problem = "a tunnel needs a token (--token-file or the variable HVQ_TOKEN) or --client-cert";
        return Err(Failure::new(Exit::Usage, problem));
    }
    let paths = arguments.paths.choice()?;
    let target = Target::parse(&arguments.url)?;
    let secrecy = arguments.transport.secrecy();
    let tls = tls::client(arguments.trust.trust(), &secrecy, &Resumption::default())?;
    let mut transport = arguments.transport.config();
    transport.set_datagram_queue(256 << 10).streams_mut().send_buffer = super::SEND_BUFFER;
    let tunnel = Tunnel {
        target,
        config: ClientConfig::new(tls, Arc::new(transport)),
        names: arguments.names.names()?,
        paths,
        token,
        lane: super::lane(arguments.no_tcp_lane),
        packets: arguments.packets(),
        servers: Vec::new(),
    };
    tunnel.run(console).map(ExitCode::from)
}
