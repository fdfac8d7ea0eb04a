//! Checks that hold in nearly every case.

use super::Evidence;
use crate::network::record::Sender;
use anyhow::{Context, Result, ensure};
use hvq_decode::Kind;
use hvq_transport::wire::version::Version;
use std::collections::BTreeSet;

impl Evidence {
    /// All files arrived as they are, and no others.
    pub(crate) fn files_arrived(&self) -> Result<()> {
        let mut found = BTreeSet::new();
        for entry in std::fs::read_dir(&self.received)? {
            found.insert(entry?.file_name().to_string_lossy().into_owned());
        }
        let wanted: BTreeSet<String> = self.files.iter().cloned().collect();
        let missing = wanted.difference(&found).count();
        ensure!(missing == 0, "{missing} of {} files are missing", wanted.len());
        ensure!(found.len() == wanted.len(), "files arrived that nobody asked for");
        for name in &wanted {
            let (sent, received) = (self.offered.join(name), self.received.join(name));
            let read = |path: &std::path::Path| std::fs::read(path).context(name.clone());
            ensure!(read(&sent)? == read(&received)?, "{name} differs from what was sent");
        }
        Ok(())
    }

    /// The server answered so many handshakes: each has a source connection ID of its own.
    pub(crate) fn has_handshakes(&self, expected: usize) -> Result<()> {
        let initials = self.right.of(Sender::Server, Kind::Initial);
        let ids: BTreeSet<Vec<u8>> =
            initials.map(|seen| seen.packet.header.source.as_slice().to_vec()).collect();
        ensure!(ids.len() == expected, "{} handshakes in place of {expected}", ids.len());
        Ok(())
    }

    /// The server answered in version 1 only.
    pub(crate) fn is_version_1(&self) -> Result<()> {
        let initials = self.right.of(Sender::Server, Kind::Initial);
        let other = initials.filter(|seen| seen.packet.header.version != Some(Version::V1)).count();
        ensure!(other == 0, "{other} Initial packets of the server are of another version");
        Ok(())
    }

    /// Checks the properties that all cases but one have in common.
    pub(crate) fn is_usual(&self, handshakes: usize) -> Result<()> {
        self.files_arrived()?;
        self.has_handshakes(handshakes)?;
        self.is_version_1()
    }
}
