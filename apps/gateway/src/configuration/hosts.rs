//! Virtual hosts, out of a configuration.

use super::certificates::authorities;
use super::file::{HealthTable, Host, SourceText};
use super::resolve::distinct;
use super::values::{Positive, Text, Time};
use super::{ConfigError, HealthConfig, HostConfig, OriginUrl, Overrides, Pattern, Protocol, Serves};
use http::uri::PathAndQuery;
use hvq_program::content::DotFiles;
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;

/// Returns the virtual hosts of the file, and behind them that of flags.
pub(super) fn hosts(
    source: &SourceText,
    hosts: Vec<Spanned<Host>>,
    overrides: &Overrides,
) -> Result<Vec<HostConfig>, ConfigError> {
    let mut resolved = Vec::new();
    for host in hosts {
        let serves = serves(source, &host)?;
        if host.get_ref().names.is_empty() {
            return Err(source.wrong(&host, "a host needs a name"));
        }
        let names = host.into_inner().names.into_iter().map(|name| name.0).collect();
        resolved.push(HostConfig { names, serves });
    }
    if let Some(serves) = overrides.fallback.clone() {
        resolved.push(HostConfig { names: vec![Pattern::Any], serves });
    }
    Ok(resolved)
}

fn serves(source: &SourceText, at: &Spanned<Host>) -> Result<Serves, ConfigError> {
    let host = at.get_ref();
    match (&host.origin, &host.origins, &host.files) {
        (None, None, None) => Err(source.wrong(at, "a host needs an origin or files")),
        (Some(url), None, None) => origins(source, host, vec![url.get_ref().0.clone()]),
        (None, Some(urls), None) => {
            let listed: Vec<OriginUrl> = urls.get_ref().iter().map(|url| url.0.clone()).collect();
            if listed.is_empty() {
                return Err(source.wrong(urls, "there is no origin in the list"));
            }
            distinct("origin", listed.iter()).map_err(|error| source.wrong(urls, error.to_string()))?;
            origins(source, host, listed)
        }
        (None, None, Some(folder)) => files(source, host, folder),
        (Some(_), Some(urls), None) => {
            Err(source.wrong(urls, "a host has an origin or a list of origins, not both"))
        }
        (_, _, Some(_)) => Err(source.wrong(at, "a host has an origin or files, not both")),
    }
}

fn origins(source: &SourceText, host: &Host, urls: Vec<OriginUrl>) -> Result<Serves, ConfigError> {
    if let Some(ca) = host.ca.as_ref().filter(|_| urls.iter().all(|url| url.protocol != Protocol::Tls)) {
        return Err(source.wrong(ca, "only an origin with https:// has a certificate"));
    }
    if let Some(dot_files) = &host.dot_files {
        return Err(source.wrong(dot_files, "only a host with files has files with dots"));
    }
    if let Some(said) = &host.compress {
        distinct("coding", said.get_ref().iter().map(|coding| coding.name()))
            .map_err(|error| source.wrong(said, error.to_string()))?;
    }
    let ca = host.ca.as_ref().map(|ca| authorities(source, ca)).transpose()?;
    let health = host.health.as_ref().map(|table| health(source, table.get_ref())).transpose()?;
    Ok(Serves::Origin {
        urls,
        health: health.unwrap_or_default(),
        ca,
        host_header: host.host_header,
        underscores: host.underscores.as_ref().map(|said| *said.get_ref()).unwrap_or_default(),
        compress: host.compress.as_ref().map(|said| said.get_ref().clone()).unwrap_or_default(),
    })
}

fn files(source: &SourceText, host: &Host, folder: &Spanned<PathBuf>) -> Result<Serves, ConfigError> {
    if !folder.get_ref().is_dir() {
        return Err(source.wrong(folder, format!("{} is not a folder", folder.get_ref().display())));
    }
    if let Some(underscores) = &host.underscores {
        return Err(source.wrong(underscores, "only an origin gets fields"));
    }
    if let Some(compress) = &host.compress {
        return Err(source.wrong(compress, "only responses of origins are compressed"));
    }
    if let Some(health) = &host.health {
        return Err(source.wrong(health, "only origins have a health"));
    }
    let asked = host.dot_files.as_ref().is_some_and(|said| *said.get_ref());
    let dot_files = if asked { DotFiles::Served } else { DotFiles::Hidden };
    Ok(Serves::Files { folder: folder.get_ref().clone(), dot_files })
}

fn health(source: &SourceText, table: &HealthTable) -> Result<HealthConfig, ConfigError> {
    let default = HealthConfig::default();
    if table.path.is_none()
        && let Some(said) = table.interval.as_ref().or(table.timeout.as_ref())
    {
        return Err(source.wrong(said, "nothing is checked without a path (path)"));
    }
    let path = |path: &Spanned<String>| match path.get_ref().parse::<PathAndQuery>() {
        Ok(parsed) if path.get_ref().starts_with('/') => Ok(parsed),
        _ => Err(source.wrong(path, format!("{:?} is no path: it begins with /", path.get_ref()))),
    };
    let most = match &table.most {
        Some(most) if *most.get_ref() > 100 => {
            return Err(source.wrong(most, "there are 100 percent at most"));
        }
        most => most.as_ref().map_or(default.most, |most| *most.get_ref()),
    };
    let time =
        |said: Option<&Text<Positive<Time>>>, default: Duration| said.map_or(default, |text| text.0.0.0);
    Ok(HealthConfig {
        failures: table.failures.map_or(default.failures, |number| number.get()),
        rest: time(table.rest.as_ref(), default.rest),
        most,
        path: table.path.as_ref().map(path).transpose()?,
        interval: time(table.interval.as_ref().map(Spanned::get_ref), default.interval),
        timeout: time(table.timeout.as_ref().map(Spanned::get_ref), default.timeout),
    })
}
