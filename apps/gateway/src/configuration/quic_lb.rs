//! Connection IDs that a load balancer can read, as they are configured.

use super::ConfigError;
use super::file::{QuicLb, SourceText};
use hvq::balancing::{FirstOctet, QuicLbConfig};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use toml::Spanned;

/// Bytes of a nonce that nobody asked for another length of: more than will ever be used up.
const NONCE: usize = 8;
/// Bytes of a key.
const KEY: usize = 16;

/// Bytes in hexadecimal, two digits each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hex(pub Vec<u8>);

impl FromStr for Hex {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
        let digits = digits.filter(|digits| !digits.is_empty() && digits.len() % 2 == 0);
        let digits = digits.ok_or("expected bytes in hexadecimal, two digits each, such as \"0a1b\"")?;
        let byte = |pair: &[u32]| pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8);
        Ok(Self(digits.chunks(2).map(byte).collect()))
    }
}

/// The key of a configuration, in hexadecimal; it is not shown.
#[derive(Clone)]
pub(super) struct Key([u8; KEY]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let key = text.parse::<Hex>().ok().and_then(|hex| hex.0.try_into().ok());
        Ok(Self(key.ok_or("a key has 16 bytes: expected 32 hexadecimal digits")?))
    }
}

/// The content of the first octet of connection IDs beside the rotation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum First {
    #[default]
    Length,
    Random,
}

/// The settings of flags and environment in place of `quic_lb`.
#[derive(Clone, Debug, Default)]
pub struct QuicLbOverrides {
    /// In place of `quic_lb.server_id`.
    pub server_id: Option<Hex>,
    /// A file with what is then in place of `quic_lb.key`.
    pub key_file: Option<PathBuf>,
    /// In place of `quic_lb.rotation`.
    pub rotation: Option<u8>,
}

/// Returns the settings of file and flags together; nothing unless one of them names a server.
pub(super) fn resolve(
    source: &SourceText,
    file: Option<Spanned<QuicLb>>,
    overrides: &QuicLbOverrides,
) -> Result<Option<QuicLbConfig>, ConfigError> {
    let written = file.as_ref().map(Spanned::get_ref);
    let server_id =
        overrides.server_id.clone().or(written.and_then(|lb| lb.server_id.clone()).map(|id| id.0));
    let wrong = |problem: String| match &file {
        Some(section) => source.wrong(section, problem),
        None => ConfigError::Missing(format!("--server-id, --quic-lb-rotation: {problem}")),
    };
    let Some(server_id) = server_id else {
        if file.is_some() || overrides.key_file.is_some() || overrides.rotation.is_some() {
            return Err(wrong(
                "a server behind a load balancer has an ID (server_id, --server-id)".to_owned(),
            ));
        }
        return Ok(None);
    };
    let key = match &overrides.key_file {
        Some(path) => Some(read_key(path)?),
        None => written.and_then(|lb| lb.key.clone()).map(|key| key.0),
    };
    let config = QuicLbConfig {
        rotation: overrides.rotation.or(written.and_then(|lb| lb.rotation)).unwrap_or(0),
        server_id: server_id.0,
        nonce_length: written.and_then(|lb| lb.nonce).unwrap_or(NONCE),
        key: key.map(|key| key.0),
        first_octet: match written.map(|lb| lb.first_octet).unwrap_or_default() {
            First::Length => FirstOctet::Length,
            First::Random => FirstOctet::Random,
        },
    };
    config.check().map_err(|error| wrong(error.to_string()))?;
    Ok(Some(config))
}

fn read_key(path: &Path) -> Result<Key, ConfigError> {
    let unreadable = |problem| ConfigError::Unreadable { file: path.display().to_string(), problem };
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    text.trim().parse().map_err(unreadable)
}
