//! `hvq proxy`: local programs through a gateway, over all channels.

use crate::arguments::Format;
use crate::failure::{Exit, Failure, OrFail, exit_of};
use crate::output::{self, Console};
use crate::paths;
use crate::qlog::Logs;
use crate::signals::{Request, Signals};
use crate::tls::{self, Publication, Resumption, SelfSigned, Trust};
use clap::Args;
use http::HeaderValue;
use http::uri::Authority;
use hvq::{ClientConfig, PathInfo, Verify};
use hvq_gateway::AcceptorError;
use hvq_gateway::proxy::{
    self, GatewayAddress, Link, LinkError, LinkOptions, Proxy, ProxyError, ProxyOptions, TlsIdentity,
};
use hvq_program::arguments::ClientIdentityArguments;
use hvq_program::arguments::NameArguments;
use hvq_program::arguments::PathArguments;
use hvq_program::arguments::TransportArguments;
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The port of HTTP/3.
const PORT: u16 = 443;
/// Silence after which a connection to the gateway says that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Arguments of `hvq proxy`.
#[derive(Debug, Args)]
pub(crate) struct ProxyArguments {
    /// The gateway: HOST or HOST:PORT
    #[arg(long, value_name = "HOST[:PORT]", value_parser = gateway, env = "HVQ_PROXY_GATEWAY")]
    gateway: GatewayAddress,
    /// The address to listen on for local programs
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3128", env = "HVQ_PROXY_LISTEN")]
    listen: SocketAddr,
    /// Listen where other machines get to: whoever gets there uses the gateway with this token
    #[arg(long)]
    allow_remote: bool,
    #[command(flatten)]
    secrets: SecretArguments,
    #[command(flatten)]
    trust: TrustArguments,
    #[command(flatten)]
    names: NameArguments,
    #[command(flatten)]
    paths: PathArguments,
    /// Give up when a handshake has taken so long
    #[arg(long, value_name = "TIME", value_parser = crate::duration::parse, default_value = "10s")]
    connect_timeout: Duration,
    #[command(flatten)]
    transport: TransportArguments,
    #[command(flatten)]
    format: Format,
}

/// The token for the gateway, and the proxy's identity over TLS.
#[derive(Debug, Args)]
struct SecretArguments {
    /// The file with the token that opens the gateway (not on the command line, where everybody could read it)
    #[arg(long, value_name = "FILE", env = "HVQ_PROXY_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// Speak TLS too, with this certificate chain (PEM): browsers tell an HTTPS proxy how urgent requests are
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Speak TLS too, with a certificate made for this name or address; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with_all = ["tls_cert", "tls_key"])]
    tls_self_signed: Vec<String>,
    /// Write the certificate that was made to this file
    #[arg(long, value_name = "FILE", requires = "tls_self_signed")]
    write_cert: Option<PathBuf>,
}

/// The certificates to trust as the gateway's.
#[derive(Debug, Args)]
struct TrustArguments {
    /// Accept any certificate: whoever is on the way can read and change everything
    #[arg(short = 'k', long, conflicts_with = "cacert")]
    insecure: bool,
    /// Accept certificates that go back to one in this file (PEM), instead of the system's
    #[arg(long, value_name = "FILE", env = "HVQ_PROXY_CACERT")]
    cacert: Option<PathBuf>,
    #[command(flatten)]
    own: ClientIdentityArguments,
}

/// Reads where the gateway is.
fn gateway(text: &str) -> Result<GatewayAddress, String> {
    let text = text.strip_prefix("https://").unwrap_or(text).trim_end_matches('/');
    let wanted = || format!("{text:?} is no gateway: expected HOST or HOST:PORT");
    let authority: Authority = text.parse().map_err(|_| wanted())?;
    let port = match authority.port() {
        Some(port) => port.as_u16(),
        None if authority.host() == text => PORT,
        None => return Err(wanted()),
    };
    Ok(GatewayAddress { host: authority.host().trim_matches(['[', ']']).to_owned(), port })
}

impl ProxyArguments {
    fn client(&self, logs: &Logs) -> Result<ClientConfig, Failure> {
        let verify = match (&self.trust.cacert, self.trust.insecure) {
            (Some(file), _) => Verify::CaFile(file.clone()),
            (None, true) => Verify::Insecure,
            (None, false) => Verify::SystemRoots,
        };
        let trust = Trust::new(verify, self.trust.own.identity());
        let tls = tls::client(trust, &self.transport.secrecy(), &Resumption::default())?;
        let mut transport = self.transport.config();
        transport.set_handshake_timeout(self.connect_timeout);
        if transport.path_keep_alive().is_none() {
            transport.set_keep_alive(Some(KEEP_ALIVE));
        }
        Ok(ClientConfig::new(tls, Arc::new(logs.watch(transport))))
    }

    fn token(&self) -> Result<Option<HeaderValue>, Failure> {
        let Some(path) = &self.secrets.token_file else { return Ok(None) };
        let text = std::fs::read_to_string(path);
        let text = text.or_fail(Exit::Usage, || format!("cannot read {}", path.display()))?;
        let value = proxy::token(&text);
        value.map(Some).map_err(|problem| Failure::new(Exit::Usage, format!("{}: {problem}", path.display())))
    }

    /// Returns the error of a proxy that does not start, with the file that is to blame.
    fn refused(&self, error: &ProxyError) -> String {
        let file = match error {
            ProxyError::Identity(AcceptorError::Chain) => &self.secrets.tls_cert,
            ProxyError::Identity(AcceptorError::Key | AcceptorError::OtherKey) => &self.secrets.tls_key,
            ProxyError::Listen(..) | ProxyError::Identity(AcceptorError::Tls(_)) => &None,
        };
        file.as_ref().map_or_else(|| error.to_string(), |file| format!("{}: {error}", file.display()))
    }

    fn identity(&self) -> Result<(Option<TlsIdentity>, Publication), Failure> {
        let secrets = &self.secrets;
        if let (Some(chain), Some(key)) = (&secrets.tls_cert, &secrets.tls_key) {
            let read = |path: &PathBuf| {
                std::fs::read(path).or_fail(Exit::Usage, || format!("cannot read {}", path.display()))
            };
            return Ok((Some(TlsIdentity { chain: read(chain)?, key: read(key)? }), Publication::default()));
        }
        if secrets.tls_self_signed.is_empty() {
            return Ok((None, Publication::default()));
        }
        let made = SelfSigned::new(&secrets.tls_self_signed)?;
        let (chain, key) = made.pem();
        Ok((Some(TlsIdentity { chain, key }), made.published_at(secrets.write_cert.as_deref())))
    }
}

/// Runs the proxy until it is told to stop.
pub(crate) async fn run(arguments: Box<ProxyArguments>, console: Console) -> Result<(), Failure> {
    if !arguments.listen.ip().is_loopback() && !arguments.allow_remote {
        let text =
            format!("--listen {}: other machines get there; --allow-remote permits it", arguments.listen);
        return Err(Failure::new(Exit::Usage, text));
    }
    let chosen = arguments.paths.choice()?;
    let logs = arguments.transport.logs()?;
    let link = Link::new(LinkOptions {
        gateway: arguments.gateway.clone(),
        config: arguments.client(&logs)?,
        names: arguments.names.names()?,
        paths: chosen.clone(),
        token: arguments.token()?,
        destined: if console >= Console::Verbose {
            |path| eprintln!("* {}", paths::destination(path))
        } else {
            |_| {}
        },
        unusable: |name, error| eprintln!("hvq: warning: path {name} cannot be used: {error}"),
        noticed: |text| eprintln!("hvq: warning: {text}"),
    })?;
    let link = Arc::new(link);
    let (identity, publication) = arguments.identity()?;
    let mut signals = if chosen.is_reloadable() { Signals::of_service()? } else { Signals::new()? };
    let options = ProxyOptions { listen: arguments.listen, identity, link: link.clone() };
    let starting = Proxy::start(options).await;
    let proxy = starting.map_err(|error| Failure::new(Exit::Usage, arguments.refused(&error)))?;
    // A gateway that is not there yet may come: only a certificate that is wrong stays wrong.
    let connected = tokio::select! {
        connected = link.connect() => connected,
        _ = signals.next() => {
            proxy.stop().await;
            return Ok(());
        }
    };
    if let Err(error) = connected {
        let failure = failure(error);
        if failure.exit() == Exit::Tls {
            return Err(failure);
        }
        console.say(format!("hvq: warning: {} (it is tried again with each request)", failure.line()));
    }
    #[cfg(unix)]
    let _control = {
        let link = link.clone();
        hvq_program::control::announce("proxy", console, move || link.status())
    };
    publication.publish()?;
    tell(proxy.local_addr(), &link, arguments.format, console)?;
    while signals.request().await == Request::Reload {
        chosen.reload_aloud(console);
    }
    proxy.stop().await;
    logs.finish(console);
    Ok(())
}

/// Says that programs may come to `address`.
fn tell(address: SocketAddr, link: &Link, format: Format, console: Console) -> Result<(), Failure> {
    if format.json {
        let way = |path: PathInfo| {
            let tuple = path.stats.tuple;
            json!({ "name": path.name, "local": tuple.local, "remote": tuple.remote })
        };
        let paths: Vec<_> = link.paths().into_iter().map(way).collect();
        output::print(&json!({ "listening": address, "paths": paths }).to_string())?;
    } else {
        console.say(format!("listening on {address} (HTTP, SOCKS5); browsers: http://{address}/proxy.pac"));
    }
    Ok(())
}

fn failure(error: LinkError) -> Failure {
    let exit = error.connection().map_or(Exit::Connection, exit_of);
    Failure::new(exit, error.to_string())
}
