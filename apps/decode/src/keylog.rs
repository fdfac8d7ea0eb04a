//! The NSS key log: secrets of TLS connections by the random number of their ClientHello (draft-ietf-tls-keylogfile).

use std::collections::HashMap;

/// The label of a secret of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Label {
    /// Protects the client's 0-RTT packets.
    ClientEarly,
    /// Protects the client's Handshake packets.
    ClientHandshake,
    /// Protects the server's Handshake packets.
    ServerHandshake,
    /// Protects the client's 1-RTT packets until the first key update.
    ClientTraffic,
    /// Protects the server's 1-RTT packets until the first key update.
    ServerTraffic,
}

impl Label {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "CLIENT_EARLY_TRAFFIC_SECRET" => Self::ClientEarly,
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => Self::ClientHandshake,
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => Self::ServerHandshake,
            "CLIENT_TRAFFIC_SECRET_0" => Self::ClientTraffic,
            "SERVER_TRAFFIC_SECRET_0" => Self::ServerTraffic,
            _ => return None,
        })
    }
}

/// The name of a secret: the random number of the ClientHello, and the secret's label.
type Name = ([u8; 32], Label);

/// Secrets of any number of connections.
#[derive(Clone, Default)]
pub struct KeyLog {
    secrets: HashMap<Name, Vec<u8>>,
}

impl std::fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyLog({} secrets)", self.secrets.len())
    }
}

impl KeyLog {
    /// Reads the lines of a key log. Lines of other kinds, comments and broken lines are passed over.
    pub fn read(text: &str) -> Self {
        Self { secrets: text.lines().filter_map(line).collect() }
    }

    /// Returns the number of QUIC's secrets.
    pub fn len(&self) -> usize {
        self.secrets.len()
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// The secret `label` of the connection whose ClientHello holds `client_random`.
    pub fn secret(&self, client_random: &[u8; 32], label: Label) -> Option<&[u8]> {
        self.secrets.get(&(*client_random, label)).map(Vec::as_slice)
    }

    /// Returns true if there is any secret of that connection.
    pub fn knows(&self, client_random: &[u8; 32]) -> bool {
        self.secrets.keys().any(|(random, _)| random == client_random)
    }
}

fn line(line: &str) -> Option<(Name, Vec<u8>)> {
    let mut words = line.split_ascii_whitespace();
    let label = Label::of(words.next()?)?;
    let random = hex(words.next()?)?.try_into().ok()?;
    let secret = hex(words.next()?)?;
    // The hash functions of TLS 1.3 have 32 or 48 bytes (RFC 8446 §B.4).
    (matches!(secret.len(), 32 | 48) && words.next().is_none()).then_some(((random, label), secret))
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    let byte = |[high, low]: &[u32; 2]| u8::try_from(high << 4 | low).ok();
    rest.is_empty().then(|| pairs.iter().map(byte).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_quic_are_read_and_others_passed_over() {
        let random = "ab".repeat(32);
        let text = format!(
            "# a comment\r\nCLIENT_RANDOM {random} {0}\nSERVER_TRAFFIC_SECRET_0 {random} {0}\r\n\
             CLIENT_TRAFFIC_SECRET_0 {random} {1}\nCLIENT_TRAFFIC_SECRET_0 {random} 0g\n\
             CLIENT_TRAFFIC_SECRET_0 é é\nCLIENT_HANDSHAKE_TRAFFIC_SECRET",
            "0f".repeat(48),
            "10".repeat(32),
        );
        let log = KeyLog::read(&text);
        assert_eq!(log.len(), 2);
        assert_eq!(log.secret(&[0xab; 32], Label::ServerTraffic), Some(&[0x0f; 48][..]));
        assert_eq!(log.secret(&[0xab; 32], Label::ClientTraffic), Some(&[0x10; 32][..]));
        assert_eq!(log.secret(&[0xab; 32], Label::ClientEarly), None);
        assert!(log.knows(&[0xab; 32]) && !log.knows(&[0xac; 32]));
        assert!(!format!("{log:?}").contains("0f0f"));
    }
}
