//! Session tickets in a file, and what was measured of paths in one beside it, so that the next run resumes.

use crate::failure::{Exit, Failure, OrFail};
use hvq::{Endpoint, SessionStore, SessionTicket};
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

/// Tickets that are kept at most.
const CAPACITY: usize = 16;
/// Bytes of a file of paths that are read at most.
const LARGEST: u64 = 1 << 16;

/// Tickets, the oldest first, in a file of one line each: the server's name and the ticket in hexadecimal digits.
#[derive(Debug)]
pub struct FileSessions {
    path: PathBuf,
    tickets: Mutex<Vec<(String, SessionTicket)>>,
    /// Tickets that came since the file was opened.
    fresh: watch::Sender<usize>,
}

impl FileSessions {
    /// The tickets in `path`, none if there is no such file yet. Lines that are no tickets are ignored.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            result => result,
        };
        let text =
            text.or_fail(Exit::Usage, || format!("cannot read the session file {}", path.display()))?;
        let tickets: Vec<_> = text.lines().filter_map(read_line).collect();
        let sessions =
            Self { path: path.to_owned(), tickets: Mutex::new(tickets), fresh: watch::Sender::new(0) };
        // A file that cannot be written is told now, not when the first ticket arrives.
        let saved = sessions.change(|_| ());
        saved.or_fail(Exit::Usage, || format!("cannot write the session file {}", path.display()))?;
        Ok(sessions)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until a server sent a ticket. An answer to a request in 0-RTT is there before the handshake is complete, and tickets
    /// come after that.
    pub async fn ticket(&self) {
        // The sender is here, so that waiting cannot fail.
        let mut fresh = self.fresh.subscribe();
        let _there = fresh.wait_for(|tickets| *tickets > 0).await;
    }

    /// Applies `change`, and writes the file.
    fn change<T>(&self, change: impl FnOnce(&mut Vec<(String, SessionTicket)>) -> T) -> io::Result<T> {
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut tickets);
        let excess = tickets.len().saturating_sub(CAPACITY);
        tickets.drain(..excess);
        let text: String = tickets
            .iter()
            .map(|(name, ticket)| format!("{name} {}\n", hexadecimal(&ticket.to_bytes())))
            .collect();
        create(&self.path)?.write_all(text.as_bytes())?;
        Ok(result)
    }
}

impl SessionStore for FileSessions {
    fn put(&self, server_name: &str, ticket: SessionTicket) {
        if let Err(error) = self.change(|tickets| tickets.push((server_name.to_owned(), ticket))) {
            tracing::warn!(%error, "cannot write the session file");
        }
        self.fresh.send_modify(|tickets| *tickets += 1);
    }

    fn take(&self, server_name: &str, protocols: &[Vec<u8>]) -> Option<SessionTicket> {
        let taken = self.change(|tickets| {
            let fits =
                |entry: &(String, SessionTicket)| entry.0 == server_name && protocols.contains(&entry.1.alpn);
            tickets.iter().rposition(fits).map(|index| tickets.remove(index).1)
        });
        // A ticket that cannot be struck off is not used: somebody could recognise the client by it.
        taken.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot write the session file");
            None
        })
    }
}

/// The file of what was measured of paths, beside the `sessions`.
fn paths_file(sessions: &Path) -> PathBuf {
    let mut name = sessions.as_os_str().to_owned();
    name.push(".paths");
    name.into()
}

/// Gives `endpoint` what earlier runs measured of paths, beside the file of `sessions`.
pub fn restore_knowledge(endpoint: &Endpoint, sessions: &Path) {
    let file = paths_file(sessions);
    let Ok(read) = fs::File::open(&file) else { return };
    let mut bytes = Vec::new();
    let known = read.take(LARGEST).read_to_end(&mut bytes).ok().and_then(|_| endpoint.add_knowledge(&bytes));
    match known {
        Some(paths) => tracing::debug!(paths, "paths are known"),
        None => tracing::warn!("{} is no file of paths", file.display()),
    }
}

/// Keeps what `endpoint` measured of paths, beside the file of `sessions`.
pub fn keep_knowledge(endpoint: &Endpoint, sessions: &Path) {
    let kept = create(&paths_file(sessions)).and_then(|mut file| file.write_all(&endpoint.knowledge()));
    if let Err(error) = kept {
        tracing::warn!(%error, "cannot write the file of paths");
    }
}

/// An empty file that only its owner can read: tickets are as secret as the sessions are.
fn create(path: &Path) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn read_line(line: &str) -> Option<(String, SessionTicket)> {
    let (name, digits) = line.split_once(' ')?;
    let pairs = digits.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> =
        pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
    Some((name.to_owned(), SessionTicket::from_bytes(&bytes?)?))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq::config::Version;
    use hvq::tls::Ticket;

    fn ticket(byte: u8) -> SessionTicket {
        let (tls, version) = (Ticket(vec![byte; 20]), Version::V1);
        SessionTicket { tls, version, alpn: b"h3".to_vec(), parameters: vec![1] }
    }

    #[test]
    fn tickets_outlive_the_process_are_taken_once_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions");
        let protocols = [b"h3".to_vec()];
        let sessions = FileSessions::open(&path).unwrap();
        for byte in 0..40 {
            sessions.put("localhost", ticket(byte));
        }
        fs::write(&path, fs::read_to_string(&path).unwrap() + "noise\nlocalhost 0g\n").unwrap();
        let sessions = FileSessions::open(&path).unwrap();
        assert_eq!(sessions.take("localhost", &protocols), Some(ticket(39)));
        assert_eq!(sessions.take("elsewhere", &protocols), None);
        let sessions = FileSessions::open(&path).unwrap();
        let rest = std::iter::from_fn(|| sessions.take("localhost", &protocols)).count();
        assert_eq!(rest, CAPACITY - 1);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_a_fault_of_the_arguments() {
        let failure = FileSessions::open(Path::new("/nonexistent/sessions")).unwrap_err();
        assert_eq!(failure.exit(), Exit::Usage);
        assert!(failure.line().contains("/nonexistent/sessions"), "{}", failure.line());
    }
}
