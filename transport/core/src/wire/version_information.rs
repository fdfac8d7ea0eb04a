//! The transport parameter version_information (RFC 9368 §3).

use super::cursor::{SliceReader, Truncated};
use super::version::Version;
use smallvec::SmallVec;

/// Available versions that are kept at most; further ones are ignored.
const MOST: usize = 32;

/// A list of versions.
pub type VersionList = SmallVec<[Version; 4]>;

/// The information of one endpoint about versions, authenticated with the handshake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersionInformation {
    /// The version that it uses for the connection.
    pub chosen: Version,
    /// A client's: those that its first flight could be of, the preferred one first, with `chosen` among them. A
    /// server's: all that it speaks, in no order.
    pub available: VersionList,
}

impl VersionInformation {
    /// Appends the value of the parameter.
    pub fn put(&self, buf: &mut Vec<u8>) {
        buf.extend_from_slice(&self.chosen.0.to_be_bytes());
        for version in &self.available {
            buf.extend_from_slice(&version.0.to_be_bytes());
        }
    }

    /// Reads the value of the parameter. The error says what RFC 9368 §4 does not permit.
    pub fn read(value: &[u8]) -> Result<Self, &'static str> {
        if value.is_empty() || !value.len().is_multiple_of(4) {
            return Err("is not a list of versions");
        }
        let mut reader = SliceReader::new(value);
        let mut next = || reader.u32().map(Version);
        let read = |Truncated| "is not a list of versions";
        let chosen = next().map_err(read)?;
        let mut available = VersionList::new();
        for _ in 1..value.len() / 4 {
            let version = next().map_err(read)?;
            if version == Version::NEGOTIATION {
                return Err("names version 0");
            }
            if available.len() < MOST {
                available.push(version);
            }
        }
        if chosen == Version::NEGOTIATION { Err("names version 0") } else { Ok(Self { chosen, available }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn information_survives_the_wire() {
        for available in [vec![], vec![Version::V1], vec![Version::V2, Version::V1, Version(0x1a2a_3a4a)]] {
            let information = VersionInformation { chosen: Version::V1, available: available.into() };
            let mut value = Vec::new();
            information.put(&mut value);
            assert_eq!(VersionInformation::read(&value), Ok(information));
        }
    }

    #[test]
    fn parts_of_versions_and_version_0_are_refused() {
        // RFC 9368 §4.
        for value in [&[][..], &[0, 0, 1], &[0, 0, 0, 1, 0], &[0; 4], &[0, 0, 0, 1, 0, 0, 0, 0]] {
            assert!(VersionInformation::read(value).is_err(), "{value:?}");
        }
    }

    #[test]
    fn a_long_list_is_cut() {
        let value: Vec<u8> = (1..=1000_u32).flat_map(u32::to_be_bytes).collect();
        assert_eq!(VersionInformation::read(&value).unwrap().available.len(), MOST);
    }
}
