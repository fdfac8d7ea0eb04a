//! Secrets of TLS until keys are made of them.

use crate::crypto::keys::{Secret, Suite};
use crate::wire::level::Level;

/// Secrets that wait for their counterpart: TLS gives out those for reading and for writing at different times.
#[derive(Debug, Default)]
pub struct PendingSecrets {
    read: Vec<(Level, Suite, Secret)>,
    write: Vec<(Level, Suite, Secret)>,
}

impl PendingSecrets {
    /// Keeps a secret for reading.
    pub fn store_read(&mut self, level: Level, suite: Suite, secret: Secret) {
        self.read.push((level, suite, secret));
    }

    /// Keeps a secret for writing.
    pub fn store_write(&mut self, level: Level, suite: Suite, secret: Secret) {
        self.write.push((level, suite, secret));
    }

    /// The secrets of `level`, for reading and for writing, once both are there.
    pub fn take_pair(&mut self, level: Level) -> Option<(Suite, Secret, Secret)> {
        let read = self.read.iter().position(|entry| entry.0 == level)?;
        let write = self.write.iter().position(|entry| entry.0 == level)?;
        let (_, suite, read) = self.read.swap_remove(read);
        let (_, _, write) = self.write.swap_remove(write);
        Some((suite, read, write))
    }

    /// Forgets all of them, and the room that they took.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// The secret of `level` for reading, once it is there.
    pub fn take_read(&mut self, level: Level) -> Option<(Suite, Secret)> {
        take(&mut self.read, level)
    }

    /// The secret of `level` for writing, once it is there.
    pub fn take_write(&mut self, level: Level) -> Option<(Suite, Secret)> {
        take(&mut self.write, level)
    }
}

fn take(secrets: &mut Vec<(Level, Suite, Secret)>, level: Level) -> Option<(Suite, Secret)> {
    let index = secrets.iter().position(|entry| entry.0 == level)?;
    let (_, suite, secret) = secrets.swap_remove(index);
    Some((suite, secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_given_out_once_and_by_its_level_and_forgotten_secrets_never() {
        let secret = |byte| Secret::new(&[byte; 32]).unwrap();
        let mut it = PendingSecrets::default();
        it.store_read(Level::Handshake, Suite::Aes128Gcm, secret(1));
        it.store_write(Level::OneRtt, Suite::Aes128Gcm, secret(2));
        assert!(it.take_pair(Level::Handshake).is_none(), "only one is there");
        assert!(it.take_read(Level::OneRtt).is_none() && it.take_write(Level::Handshake).is_none());
        let read = it.take_read(Level::Handshake).map(|(_, secret)| secret.as_slice().to_vec());
        let write = it.take_write(Level::OneRtt).map(|(_, secret)| secret.as_slice().to_vec());
        assert_eq!((read, write), (Some(vec![1; 32]), Some(vec![2; 32])));
        assert!(it.take_read(Level::Handshake).is_none() && it.take_write(Level::OneRtt).is_none());
        it.store_read(Level::OneRtt, Suite::Aes128Gcm, secret(3));
        it.store_write(Level::OneRtt, Suite::Aes128Gcm, secret(4));
        it.forget();
        assert!(it.take_pair(Level::OneRtt).is_none() && it.take_read(Level::OneRtt).is_none());
        assert!(it.take_write(Level::OneRtt).is_none());
    }
}
