//! The file of `hvq up`: one table, of a client or of a server.

mod client;
mod server;
mod values;

pub(super) use client::{ClientSettings, KillSwitch, Split};
pub(super) use server::{Nat, ServerSettings};
pub(super) use values::{ControlGroup, Port, Route};

use crate::TcpLane;
use client::ClientTable;
use hvq_program::configuration::{ConfigError, Text};
use serde::Deserialize;
use server::ServerTable;
use std::path::{Path, PathBuf};
use toml::Spanned;
use values::Token;

/// The longest name of a device, in bytes.
const LONGEST_DEVICE: usize = 15;
/// A shorter token could be guessed.
const SHORTEST_TOKEN: usize = 16;

/// A file of `hvq up`.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of the file without its ending, by which `hvq down` knows the tunnel.
    pub name: String,
    /// The end of the tunnel.
    pub(super) end: End,
}

/// The end of a tunnel.
#[derive(Clone, Debug)]
pub(super) enum End {
    Client(Box<ClientSettings>),
    Server(Box<ServerSettings>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    client: Option<ClientTable>,
    server: Option<Spanned<ServerTable>>,
}

fn values<T>(texts: Vec<Text<T>>) -> Vec<T> {
    texts.into_iter().map(|text| text.0).collect()
}

/// The file with its text, which errors point into.
struct Source {
    file: String,
    text: String,
    name: String,
}

impl Settings {
    /// Reads the file at `path`, and the files of tokens that it names.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::Unreadable { file: file.clone(), problem: error.to_string() })?;
        let name = name_of(path)?;
        let parsed: Result<File, _> = toml::from_str(&text);
        let parsed = parsed.map_err(|error| ConfigError::at(&file, &text, error.span(), error.message()))?;
        let source = Source { file, text, name };
        let end = match (parsed.client, parsed.server) {
            (Some(client), None) => End::Client(Box::new(source.client(client)?)),
            (None, Some(server)) => End::Server(Box::new(source.server(server)?)),
            (Some(_), Some(server)) => {
                return Err(source.wrong(&server, "a file is for a client or for a server, not for both"));
            }
            (None, None) => return Err(source.missing("there is no table [client] or [server]")),
        };
        Ok(Self { name: source.name, end })
    }
}

/// The name of the tunnel of the file at `path`.
///
/// # Errors
/// It has others than letters, digits, dots and dashes.
pub(super) fn name_of(path: &Path) -> Result<String, ConfigError> {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.starts_with('.') || !name.bytes().all(plain) {
        let file = path.display().to_string();
        let problem =
            "the name of the file names the tunnel, and has letters, digits, dots and dashes".to_owned();
        return Err(ConfigError::Unreadable { file, problem });
    }
    Ok(name.to_owned())
}

impl Source {
    fn wrong<T>(&self, at: &Spanned<T>, problem: impl Into<String>) -> ConfigError {
        ConfigError::at(&self.file, &self.text, Some(at.span()), problem)
    }

    fn missing(&self, problem: &str) -> ConfigError {
        ConfigError::Missing(format!("{}: {problem}", self.file))
    }

    fn device(&self, named: Option<&Spanned<String>>) -> Result<String, ConfigError> {
        let name = named.map_or(&self.name, Spanned::get_ref);
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if plain && (1..=LONGEST_DEVICE).contains(&name.len()) {
            return Ok(name.clone());
        }
        let problem = "a device's name has 1 to 15 letters, digits, dots and dashes";
        Err(named.map_or_else(
            || self.missing(&format!("{problem}: say `device`, since the name of the file is none")),
            |at| self.wrong(at, problem),
        ))
    }

    fn readable(&self, file: &Spanned<PathBuf>) -> Result<(), ConfigError> {
        let opened = std::fs::File::open(file.get_ref()).map(drop);
        opened.map_err(|error| self.wrong(file, format!("{}: {error}", file.get_ref().display())))
    }

    /// The token in `file`: its first line.
    fn token(&self, file: &Spanned<PathBuf>) -> Result<Token, ConfigError> {
        let path = file.get_ref().display();
        let text = std::fs::read_to_string(file.get_ref());
        let text = text.map_err(|error| self.wrong(file, format!("{path}: {error}")))?;
        let token = text.lines().next().unwrap_or_default().trim();
        match token.len() < SHORTEST_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => {
                Err(self.wrong(file, format!("{path}: a token has 16 characters or more, without spaces")))
            }
            false => Ok(Token(token.to_owned())),
        }
    }
}

fn lane(wanted: Option<bool>) -> TcpLane {
    if wanted.unwrap_or(true) { TcpLane::On } else { TcpLane::Off }
}
