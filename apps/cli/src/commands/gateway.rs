//! `hvq gateway`: multipath QUIC with HTTP/3 in front of origins.

use crate::arguments::Format;
use crate::descriptors;
use crate::failure::{Exit, Failure};
use crate::output::{self, Console};
use crate::qlog::Logs;
use crate::signals::Signals;
use crate::tls::{Publication, SelfSigned};
use clap::Args;
use hvq::congestion::Algorithm;
use hvq::{ChannelOptions, Identity};
use hvq_gateway::configuration::{
    Format as LogFormat, HealthConfig, Hex, HostHeader, LimitOverrides, OriginUrl, QuicLbOverrides, Serves,
    Underscores,
};
use hvq_gateway::destination_policy::Destination;
use hvq_gateway::keys::TakeOver;
use hvq_gateway::{Config, ConfigError, Gateway, Overrides, StartError, service};
use hvq_program::transport::from_environment;
use hvq_scheduler::Policy;
use serde_json::json;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `hvq gateway`. Flags go before the environment, and both before the file.
#[derive(Debug, Args)]
pub(crate) struct GatewayArguments {
    /// The configuration (TOML); read again on SIGHUP
    #[arg(short, long, value_name = "FILE", env = "HVQ_GATEWAY_CONFIG")]
    config: Option<PathBuf>,
    /// Check the configuration, say what is wrong with file, line and field, and end
    #[arg(long)]
    check_config: bool,
    /// The address to listen on; may be repeated (by default [::]:443, or the addresses of the channels)
    #[arg(long, value_name = "ADDRESS:PORT", env = "HVQ_GATEWAY_LISTEN", value_delimiter = ',')]
    listen: Vec<SocketAddr>,
    /// The address to listen on over TCP, with TLS, for HTTP/2 and HTTP/1.1; responses there announce HTTP/3 to browsers; may be repeated
    #[arg(long, value_name = "ADDRESS:PORT", env = "HVQ_GATEWAY_LISTEN_TCP", value_delimiter = ',')]
    listen_tcp: Vec<SocketAddr>,
    /// The address to listen on over TCP without TLS, where browsers are sent to https; may be repeated
    #[arg(long, value_name = "ADDRESS:PORT", env = "HVQ_GATEWAY_LISTEN_HTTP", value_delimiter = ',')]
    listen_http: Vec<SocketAddr>,
    /// A listening address that belongs to a channel, and what is known of it; may be repeated
    #[arg(long, value_name = "NAME=ADDRESS[:PORT][,rate=…,delay=…,dscp=…]")]
    channel: Vec<ChannelOptions>,
    /// The address for metrics (/metrics) and health (/health), over HTTP/1.1
    #[arg(long, value_name = "ADDRESS:PORT", env = "HVQ_GATEWAY_ADMIN")]
    admin: Option<SocketAddr>,
    /// The time for requests under way to finish once the gateway is to stop
    #[arg(long, value_name = "TIME", env = "HVQ_GATEWAY_DRAIN", value_parser = crate::duration::parse)]
    drain: Option<Duration>,
    #[command(flatten)]
    identity: IdentityArguments,
    #[command(flatten)]
    content: ContentArguments,
    #[command(flatten)]
    through: ThroughArguments,
    #[command(flatten)]
    scale: ScaleArguments,
    #[command(flatten)]
    limits: LimitArguments,
    #[command(flatten)]
    records: RecordArguments,
    /// The policy that chooses the path of each frame
    #[arg(long, value_name = "NAME", env = "HVQ_GATEWAY_SCHEDULER")]
    scheduler: Option<Policy>,
    /// Congestion control of paths that name none
    #[arg(long, visible_alias = "cc", value_name = "NAME", env = "HVQ_GATEWAY_CONGESTION")]
    congestion: Option<Algorithm>,
    #[command(flatten)]
    format: Format,
}

/// The identity of the gateway.
#[derive(Debug, Args)]
struct IdentityArguments {
    /// The certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "key", env = "HVQ_GATEWAY_CERT")]
    cert: Option<PathBuf>,
    /// The private key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert", env = "HVQ_GATEWAY_KEY")]
    key: Option<PathBuf>,
    /// Make a certificate for this host name or address; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with_all = ["cert", "key"])]
    self_signed: Vec<String>,
    /// Write the certificate that was made to this file, for --cacert
    #[arg(long, value_name = "FILE", requires = "self_signed")]
    write_cert: Option<PathBuf>,
    /// Keep the keys of stateless resets, address tokens and session tickets in this file, which is made if it is missing: then a
    /// restart costs clients a round trip
    #[arg(long, value_name = "FILE", env = "HVQ_GATEWAY_PERSISTENT_KEYS")]
    persistent_keys: Option<PathBuf>,
    /// Take the addresses of a gateway that runs with the same --persistent-keys: it keeps its connections, and is to be told to
    /// stop (SIGTERM) once this one says that it listens. Not with tunnels for IP packets, which cannot be handed over
    #[arg(long)]
    take_over: bool,
}

/// The content behind the gateway.
#[derive(Debug, Args)]
struct ContentArguments {
    /// The origin of the hosts that the file does not name: http://HOST:PORT, h2c://HOST:PORT or https://HOST:PORT
    #[arg(long, value_name = "URL", conflicts_with = "root", env = "HVQ_GATEWAY_ORIGIN")]
    origin: Option<OriginUrl>,
    /// The folder whose files are served for hosts that the file does not name
    #[arg(long, value_name = "FOLDER", env = "HVQ_GATEWAY_ROOT")]
    root: Option<PathBuf>,
}

/// The clients that may go through the gateway, and their destinations.
#[derive(Debug, Args)]
struct ThroughArguments {
    /// A host and port that clients with a token may reach through the gateway, such as *:443; may be repeated
    #[arg(long, value_name = "HOST:PORT", env = "HVQ_GATEWAY_ALLOW", value_delimiter = ',')]
    allow: Vec<Destination>,
    /// The tokens, a line each: NAME TOKEN
    #[arg(long, value_name = "FILE", env = "HVQ_GATEWAY_TOKENS")]
    tokens: Option<PathBuf>,
    /// Take certificates of this authority (PEM) too, in place of tokens
    #[arg(long, value_name = "FILE", env = "HVQ_GATEWAY_CLIENT_CA")]
    client_ca: Option<PathBuf>,
    /// A name that such a certificate has to have, such as ann.example.org or *.example.org; may be repeated (by default any)
    #[arg(long, value_name = "NAME", env = "HVQ_GATEWAY_CLIENT", value_delimiter = ',')]
    client: Vec<String>,
    /// A network that IP packets may go to through tunnels (hvq tunnel connect), for clients with a token or a certificate; may be
    /// repeated; needs root
    #[arg(long, value_name = "NETWORK", env = "HVQ_GATEWAY_TUNNEL_ROUTE", value_delimiter = ',')]
    tunnel_route: Vec<ipnet::IpNet>,
    /// A network that may be reached though it is not public, such as 10.0.0.0/8; may be repeated
    #[arg(long, value_name = "NETWORK", env = "HVQ_GATEWAY_REACH", value_delimiter = ',')]
    reach: Vec<ipnet::IpNet>,
}

/// The arguments of a gateway that is one of many.
#[derive(Debug, Args)]
struct ScaleArguments {
    /// Endpoints that share the addresses, so that several processors serve them: packets are shared out by connection ID
    #[arg(long, value_name = "COUNT", env = "HVQ_GATEWAY_WORKERS")]
    workers: Option<NonZeroU16>,
    /// This server's ID for load balancers in front (QUIC-LB), in hexadecimal; connection IDs then tell it
    #[arg(long, value_name = "HEX", env = "HVQ_GATEWAY_SERVER_ID")]
    server_id: Option<Hex>,
    /// The file with the key that load balancers have too, 32 hexadecimal digits; without one everybody reads the server's ID
    #[arg(long, value_name = "FILE", env = "HVQ_GATEWAY_QUIC_LB_KEY_FILE")]
    quic_lb_key_file: Option<PathBuf>,
    /// The number of this one among the load balancers' configurations, 0 to 6
    #[arg(long, value_name = "NUMBER", env = "HVQ_GATEWAY_QUIC_LB_ROTATION")]
    quic_lb_rotation: Option<u8>,
}

/// The limits on all that clients have at a time. One client may have all of it until others need some; the one that
/// has the most then gives way.
#[derive(Debug, Args)]
struct LimitArguments {
    /// Connections at a time
    #[arg(long, value_name = "COUNT", env = "HVQ_GATEWAY_MAX_CONNECTIONS")]
    max_connections: Option<NonZeroUsize>,
    /// Handshakes under way at a time
    #[arg(long, value_name = "COUNT", env = "HVQ_GATEWAY_MAX_HANDSHAKES")]
    max_handshakes: Option<NonZeroUsize>,
    /// Requests that are served at a time
    #[arg(long, value_name = "COUNT", env = "HVQ_GATEWAY_MAX_REQUESTS")]
    max_requests: Option<NonZeroUsize>,
    /// Tunnels that are open at a time
    #[arg(long, value_name = "COUNT", env = "HVQ_GATEWAY_MAX_TUNNELS")]
    max_tunnels: Option<usize>,
}

impl LimitArguments {
    fn overrides(&self) -> LimitOverrides {
        LimitOverrides {
            connections: self.max_connections,
            handshakes: self.max_handshakes,
            requests: self.max_requests,
            tunnels: self.max_tunnels,
        }
    }
}

/// The logs that are written.
#[derive(Debug, Args)]
struct RecordArguments {
    /// The access log; - is standard output
    #[arg(long, value_name = "FILE", env = "HVQ_GATEWAY_ACCESS_LOG")]
    access_log: Option<PathBuf>,
    /// The format of its lines: common or json
    #[arg(long, value_name = "FORMAT", env = "HVQ_GATEWAY_ACCESS_LOG_FORMAT")]
    access_log_format: Option<LogFormat>,
    /// Write what each connection whose handshake is complete does to a qlog file in this folder (by default what QLOGDIR says)
    #[arg(long, value_name = "FOLDER", env = "QLOGDIR")]
    qlog: Option<PathBuf>,
    /// Append TLS secrets to this file, for tools that decrypt captures (by default what SSLKEYLOGFILE says)
    #[arg(long, value_name = "FILE")]
    keylog: Option<PathBuf>,
}

impl GatewayArguments {
    fn overrides(&self, identity: Option<Identity>, logs: &Logs) -> Overrides {
        let origin = self.content.origin.clone().map(|url| Serves::Origin {
            urls: vec![url],
            health: HealthConfig::default(),
            ca: None,
            host_header: HostHeader::Client,
            underscores: Underscores::Drop,
            compress: Vec::new(),
        });
        Overrides {
            listen: self.listen.clone(),
            listen_tcp: self.listen_tcp.clone(),
            listen_http: self.listen_http.clone(),
            channels: self.channel.clone(),
            identity,
            admin: self.admin,
            drain: self.drain,
            scheduler: self.scheduler,
            congestion: self.congestion,
            log_file: self.records.access_log.clone(),
            log_format: self.records.access_log_format,
            fallback: origin.or(self.content.root.clone().map(Serves::files)),
            allow: self.through.allow.clone(),
            tokens: self.through.tokens.clone(),
            client_ca: self.through.client_ca.clone(),
            clients: self.through.client.clone(),
            reach: self.through.reach.clone(),
            routes: self.through.tunnel_route.clone(),
            tracer: logs.tracer(),
            persistent_keys: self.identity.persistent_keys.clone(),
            take_over: if self.identity.take_over { TakeOver::IfThere } else { TakeOver::Never },
            key_log: self.records.keylog.clone().or_else(|| from_environment("SSLKEYLOGFILE")),
            workers: self.scale.workers,
            limits: self.limits.overrides(),
            quic_lb: QuicLbOverrides {
                server_id: self.scale.server_id.clone(),
                key_file: self.scale.quic_lb_key_file.clone(),
                rotation: self.scale.quic_lb_rotation,
            },
        }
    }

    /// Certificate and key that the arguments name or ask for, and what is to be published of those that were made.
    fn identity(&self) -> Result<(Option<Identity>, Publication), Failure> {
        if let (Some(chain), Some(key)) = (&self.identity.cert, &self.identity.key) {
            let named = Identity::Files { chain: chain.clone(), key: key.clone() };
            return Ok((Some(named), Publication::default()));
        }
        if self.identity.self_signed.is_empty() {
            return Ok((None, Publication::default()));
        }
        let made = SelfSigned::new(&self.identity.self_signed)?;
        Ok((Some(made.identity()), made.published_at(self.identity.write_cert.as_deref())))
    }
}

/// Runs the gateway until it is told to stop.
pub(crate) async fn run(arguments: Box<GatewayArguments>, console: Console) -> Result<(), Failure> {
    let logs = Logs::open(arguments.records.qlog.as_deref())?;
    let (identity, publication) = arguments.identity()?;
    let overrides = arguments.overrides(identity, &logs);
    let load = || {
        let loaded = Config::load(arguments.config.as_deref(), &overrides);
        let warnings = loaded.iter().flat_map(Config::warnings);
        warnings.for_each(|warning| eprintln!("hvq: warning: {warning}"));
        loaded
    };
    let config = load().map_err(wrong)?;
    if arguments.check_config {
        // A certificate that does not fit its key, or an origin's that is none, is found by trying.
        hvq_gateway::check(&config).map_err(refused)?;
        console.say("the configuration is sound");
        for record in config.https_records() {
            console.say(format!("for the zone, so that browsers know of HTTP/3 at once: {record}"));
        }
        return Ok(());
    }
    let mut signals = Signals::of_service()?;
    descriptors::raise_limit();
    let gateway = Gateway::start(config).await.map_err(refused)?;
    publication.publish()?;
    announce(&arguments, &gateway, console)?;
    let ended = service::run(gateway, &mut signals, load, console).await;
    logs.finish(console);
    ended
}

fn wrong(error: ConfigError) -> Failure {
    Failure::new(Exit::Usage, error.to_string())
}

fn refused(error: StartError) -> Failure {
    Failure::new(Exit::Usage, error.to_string())
}

/// Says where the gateway listens.
fn announce(arguments: &GatewayArguments, gateway: &Gateway, console: Console) -> Result<(), Failure> {
    let (addresses, admin) = (gateway.local_addrs(), gateway.admin_addr());
    if arguments.format.json {
        return output::print(
            &json!({ "listening": addresses, "tcp": gateway.tcp_addrs(), "admin": admin }).to_string(),
        );
    }
    let addresses = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    console.say(format!("listening on {addresses} (UDP)"));
    if !gateway.tcp_addrs().is_empty() {
        let tcp = gateway.tcp_addrs().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        console.say(format!("listening on {tcp} (TCP)"));
    }
    if let Some(admin) = admin {
        console.say(format!("metrics at http://{admin}/metrics"));
    }
    Ok(())
}
