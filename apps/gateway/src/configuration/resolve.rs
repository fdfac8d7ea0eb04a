//! The step from the written configuration to the one in use, with everything checked that can be checked without
//! starting.

use super::certificates::credentials;
use super::file::{File, SourceText};
use super::hosts::hosts;
use super::values::{Positive, Size, Text, Time};
use super::{
    Config, ConfigError, DEFAULT_LISTEN, Format, LimitOverrides, Limits, LogConfig, OriginFrame, Overrides,
    Timeouts,
};
use super::{proxy, quic_lb, tcp};
use crate::keys::{Keys, TakeOver};
use hvq::congestion::Algorithm;
use hvq::transport::wire::overhead::LARGEST_PAYLOAD;
use hvq::{EarlyData, LocalAddress};
use hvq_scheduler::Policy;
use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroUsize};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;

/// Sizes of datagrams that may be asked for, in bytes of UDP payload.
const DATAGRAMS: RangeInclusive<usize> = 1_200..=LARGEST_PAYLOAD;

pub(super) fn resolve(source: &SourceText, file: File, overrides: &Overrides) -> Result<Config, ConfigError> {
    let largest_datagram = largest_datagram(source, file.transport.largest_datagram.as_ref())?;
    let credentials = credentials(source, &file, overrides)?;
    let hosts = hosts(source, file.host, overrides)?;
    let proxy = proxy::proxy(source, file.proxy, overrides)?;
    let tunnel = proxy::tunnel(source, file.tunnel, proxy.as_ref(), overrides)?;
    if hosts.is_empty() && proxy.is_none() {
        return Err(ConfigError::Missing(
            "there is nothing to serve: name an origin or a folder ([[host]], --origin or --root), or what may be reached \
             ([proxy], --allow)"
                .to_owned(),
        ));
    }
    let channels: Vec<_> = instead(&overrides.channels, file.channel.into_iter().map(|text| text.0));
    if let Some(channel) = channels.iter().find(|channel| matches!(channel.local, LocalAddress::Interface(_)))
    {
        let name = &channel.name;
        return Err(ConfigError::Missing(format!(
            "channel {name}: a gateway needs an address, not an interface"
        )));
    }
    distinct("channel", channels.iter().map(|channel| &channel.name))?;
    let listen = listen(instead(&overrides.listen, file.listen), channels.is_empty())?;
    let log_format = file.log.format.map(|text| text.0);
    Ok(Config {
        listen,
        channels,
        credentials,
        tcp: tcp::tcp(source, file.tcp, overrides)?,
        admin: overrides.admin.or(file.admin),
        admin_hosts: file.admin_hosts,
        drain: overrides.drain.unwrap_or(time(&file.drain, Duration::from_secs(30))),
        early_data: if file.early_data == Some(true) { EarlyData::On } else { EarlyData::Off },
        origin_frame: match file.origin_frame {
            Some(false) => OriginFrame::Omitted,
            Some(true) | None => OriginFrame::Sent,
        },
        scheduler: overrides.scheduler.or(value(&file.transport.scheduler)).unwrap_or(Policy::Hvc),
        congestion: overrides.congestion.or(value(&file.transport.congestion)).unwrap_or(Algorithm::Cubic),
        connection_idle: time(&file.transport.idle, Duration::from_secs(60)),
        largest_datagram,
        tracer: overrides.tracer.clone(),
        log: LogConfig {
            file: overrides.log_file.clone().or(file.log.file),
            format: overrides.log_format.or(log_format).unwrap_or(Format::Common),
        },
        limits: limits(&file.limits, overrides.limits),
        timeouts: timeouts(&file.timeouts),
        hosts,
        proxy,
        tunnel,
        persistent_keys: persistent_keys(source, file.persistent_keys, overrides)?,
        key_log: overrides.key_log.clone(),
        take_over: overrides.take_over,
        workers: overrides.workers.or(file.workers).unwrap_or(NonZeroU16::MIN),
        quic_lb: quic_lb::resolve(source, file.quic_lb, &overrides.quic_lb)?,
    })
}

/// The file of keys, which is sound or can be made.
fn persistent_keys(
    source: &SourceText,
    said: Option<Spanned<PathBuf>>,
    overrides: &Overrides,
) -> Result<Option<PathBuf>, ConfigError> {
    if let Some(path) = &overrides.persistent_keys {
        Keys::check(path).map_err(|error| ConfigError::Missing(error.to_string()))?;
        return Ok(Some(path.clone()));
    }
    let Some(said) = said else {
        if overrides.take_over == TakeOver::IfThere {
            return Err(ConfigError::Missing(
                "--take-over: the gateway that runs is known by its keys (persistent_keys, --persistent-keys)".to_owned(),
            ));
        }
        return Ok(None);
    };
    Keys::check(said.get_ref()).map_err(|error| source.wrong(&said, error.to_string()))?;
    Ok(Some(said.into_inner()))
}

/// Returns the settings of the command line, or else those of the file.
pub(super) fn instead<T: Clone>(said: &[T], file: impl IntoIterator<Item = T>) -> Vec<T> {
    if said.is_empty() { file.into_iter().collect() } else { said.to_vec() }
}

/// Returns the addresses to listen on: the default, if nothing else is named and there are no channels.
fn listen(mut named: Vec<SocketAddr>, is_all: bool) -> Result<Vec<SocketAddr>, ConfigError> {
    if named.is_empty() && is_all {
        named.push(DEFAULT_LISTEN.parse().expect("the constant is an address"));
    }
    // The system chooses another port each time that it is asked to.
    distinct("listening address", named.iter().filter(|address| address.port() != 0))?;
    Ok(named)
}

/// Fails if one of `values` stands there twice.
pub(super) fn distinct<T: Display + Eq + Hash>(
    what: &str,
    values: impl Iterator<Item = T>,
) -> Result<(), ConfigError> {
    let mut seen = HashSet::new();
    for value in values {
        if seen.contains(&value) {
            return Err(ConfigError::Missing(format!("{what} {value} stands there twice")));
        }
        seen.insert(value);
    }
    Ok(())
}

fn value<T: Copy>(text: &Option<Text<T>>) -> Option<T> {
    text.as_ref().map(|text| text.0)
}

fn time(text: &Option<Text<Time>>, default: Duration) -> Duration {
    text.as_ref().map_or(default, |text| text.0.0)
}

fn bytes(text: &Option<Text<Positive<Size>>>, default: usize) -> usize {
    text.as_ref().map_or(default, |text| usize::try_from(text.0.0.0).unwrap_or(usize::MAX))
}

fn some_time(text: &Option<Text<Positive<Time>>>, default: Duration) -> Duration {
    text.as_ref().map_or(default, |text| text.0.0.0)
}

/// The largest datagram that is tried: every path carries 1200 bytes (RFC 9000 §14), and UDP over IPv4 no more than 65,507.
fn largest_datagram(source: &SourceText, said: Option<&Spanned<Text<Size>>>) -> Result<usize, ConfigError> {
    let Some(said) = said else { return Ok(*DATAGRAMS.end()) };
    let size = usize::try_from(said.get_ref().0.0).ok().filter(|size| DATAGRAMS.contains(size));
    let (least, most) = (DATAGRAMS.start(), DATAGRAMS.end());
    size.ok_or_else(|| source.wrong(said, format!("a datagram has {least} to {most} bytes")))
}

fn limits(file: &super::file::LimitsTable, said: LimitOverrides) -> Limits {
    let default = Limits::default();
    let count = |said: Option<NonZeroUsize>, file: Option<NonZeroUsize>, default| {
        said.or(file).map_or(default, NonZeroUsize::get)
    };
    Limits {
        header: file.header.as_ref().map_or(default.header, |text| text.0.0.0),
        body: file.body.as_ref().map_or(default.body, |text| text.0.0),
        connections: count(said.connections, file.connections, default.connections),
        handshakes: count(said.handshakes, file.handshakes, default.handshakes),
        requests: count(said.requests, file.requests, default.requests),
        requests_per_connection: file
            .requests_per_connection
            .map_or(default.requests_per_connection, |number| number.get().into()),
        tunnels: said.tunnels.or(file.tunnels).unwrap_or(default.tunnels),
        memory: bytes(&file.memory, default.memory),
        memory_per_connection: bytes(&file.memory_per_connection, default.memory_per_connection),
    }
}

fn timeouts(file: &super::file::TimeoutsTable) -> Timeouts {
    let default = Timeouts::default();
    Timeouts {
        header: some_time(&file.header, default.header),
        connect: some_time(&file.connect, default.connect),
        first_byte: some_time(&file.first_byte, default.first_byte),
        idle: some_time(&file.idle, default.idle),
        tunnel: some_time(&file.tunnel, default.tunnel),
        files: time(&file.files, default.files),
    }
}
