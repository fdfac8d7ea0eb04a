//! The ports over TCP, out of a configuration.

use super::file::{SourceText, TcpTable};
use super::resolve::{distinct, instead};
use super::{ConfigError, Overrides, TcpConfig};
use std::net::SocketAddr;
use toml::Spanned;

/// Returns the ports over TCP, if there are any.
pub(super) fn tcp(
    source: &SourceText,
    said: Option<Spanned<TcpTable>>,
    overrides: &Overrides,
) -> Result<Option<TcpConfig>, ConfigError> {
    let (at, table) = match said {
        Some(said) => (Some(Spanned::new(said.span(), ())), said.into_inner()),
        None => (None, TcpTable::default()),
    };
    let wrong = |problem: &str| match &at {
        Some(at) => source.wrong(at, problem),
        None => ConfigError::Missing(problem.to_owned()),
    };
    let (listen, http) =
        (instead(&overrides.listen_tcp, table.listen), instead(&overrides.listen_http, table.http));
    if listen.is_empty() {
        return match (&at, http.is_empty()) {
            (None, true) => Ok(None),
            (Some(_), true) => {
                Err(wrong("there is no address to listen on: name one (listen, --listen-tcp)"))
            }
            (_, false) => Err(wrong(
                "browsers would be sent to https, where nobody listens: name an address (listen, --listen-tcp)",
            )),
        };
    }
    let fixed = |address: &&SocketAddr| address.port() != 0;
    distinct("listening address of TCP", listen.iter().chain(&http).filter(fixed))?;
    if let Some(folder) = &table.challenges {
        if !folder.get_ref().is_dir() {
            return Err(source.wrong(folder, format!("{} is not a folder", folder.get_ref().display())));
        }
        if http.is_empty() {
            return Err(source.wrong(
                folder,
                "challenges are shown without TLS only: name an address (http, --listen-http)",
            ));
        }
    }
    Ok(Some(TcpConfig {
        listen,
        http,
        challenges: table.challenges.map(Spanned::into_inner),
        alt_svc: table.alt_svc.map_or(TcpConfig::ALT_SVC, |text| text.0.0),
        oldest_tls: table.tls,
    }))
}
