//! Keys that outlive the process: those of stateless resets, of address validation tokens, and of session tickets. A gateway
//! that is started again with them tells clients of before with their next packet that their connections are gone (RFC 9000
//! §10.3), believes their tokens and resumes their sessions.

use hvq::balancing::{Generation, Succession};
use hvq::tls::{ResetKey, TicketKeys, TokenKey};
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt::{self, Write as _};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The first line of a file of keys, behind comments.
const HEAD: &str = "hvq-gateway-keys 1";
/// A file is no longer than this, in bytes.
const LONGEST: u64 = 16 << 10;
/// The time for which a key of tickets seals.
const SEALS: Duration = Duration::from_secs(24 * 3600);
/// The time for which it opens: two days longer, which is how long BoringSSL lets tickets live.
const OPENS: Duration = Duration::from_secs(3 * 24 * 3600);
/// Keys of tickets that a file has at most.
const TICKETS: usize = 8;

/// The reason for which there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The system refuses.
    #[error("{file}: {source}")]
    System {
        /// The file or folder.
        file: String,
        /// The reason.
        source: io::Error,
    },
    /// Others could read the file, or change it.
    #[error("{file} may be read or written by others (mode {mode:03o}): its mode has to be 600")]
    Open {
        /// The file.
        file: String,
        /// Its permissions.
        mode: u32,
    },
    /// The file is not what was written.
    #[error(
        "{file} is damaged: {problem}; connections and tickets of before are lost without it, and it is made anew once it is gone"
    )]
    Damaged {
        /// The file.
        file: String,
        /// The first thing that is wrong.
        problem: &'static str,
    },
    /// Two generations can be told apart, and no more.
    #[error("process {0} took over from process {1}, which has not ended yet: try again when it has")]
    Busy(u32, u32),
}

/// A secret and, for tickets, when it was made.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ticket {
    /// Seconds since 1970.
    made: u64,
    secret: [u8; 32],
}

/// Keys, as a file has them.
#[derive(Clone, PartialEq, Eq)]
struct Content {
    reset: [u8; 32],
    token: [u8; 32],
    /// The newest first; at least one.
    tickets: Vec<Ticket>,
    holder: Option<Holder>,
}

/// The gateway that was started with the keys last.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Holder {
    generation: Generation,
    workers: u16,
    process: u32,
    /// The process that it took over from, 0 if there was none.
    former: u32,
}

/// Keys in a file.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    path: PathBuf,
    content: Content,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Keys {
    /// Opens the keys in the file at `path`, which is made with new ones if it is missing, readable by its owner alone.
    /// Keys of tickets that sealed for a day by `now` are followed by a new one.
    ///
    /// # Errors
    /// See [`KeysError`].
    pub fn open(path: &Path, now: SystemTime) -> Result<Self, KeysError> {
        let content = match read(path)? {
            Some(content) => content,
            None => {
                let made = Content::new(now).map_err(|source| system(path, source))?;
                match write(path, &made, Target::Free) {
                    Ok(()) => made,
                    // Somebody else was faster.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        read(path)?.ok_or_else(|| system(path, io::ErrorKind::NotFound.into()))?
                    }
                    Err(source) => return Err(system(path, source)),
                }
            }
        };
        let mut keys = Self { path: path.to_owned(), content };
        keys.rotate(now)?;
        Ok(keys)
    }

    /// Checks that [`Keys::open`] would do, as far as that can be told without writing.
    ///
    /// # Errors
    /// See [`KeysError`].
    pub fn check(path: &Path) -> Result<(), KeysError> {
        if read(path)?.is_some() {
            return Ok(());
        }
        let folder = folder_of(path);
        match fs::metadata(folder) {
            Ok(there) if there.is_dir() && !there.permissions().readonly() => Ok(()),
            Ok(_) => Err(system(folder, io::Error::other("this is no folder that can be written to"))),
            Err(source) => Err(system(folder, source)),
        }
    }

    /// Begins a new key of tickets if the newest is a day old by `now`, and forgets those that no ticket is sealed with any
    /// more; whether anything changed.
    ///
    /// # Errors
    /// The file cannot be written: nothing has changed.
    pub fn rotate(&mut self, now: SystemTime) -> Result<bool, KeysError> {
        // Another gateway may have taken over.
        let current = read(&self.path)?.unwrap_or_else(|| self.content.clone());
        let Some(next) = current.rotated(now).map_err(|source| system(&self.path, source))? else {
            return Ok(false);
        };
        write(&self.path, &next, Target::Taken).map_err(|source| system(&self.path, source))?;
        self.content = next;
        Ok(true)
    }

    /// Returns the time until [`Keys::rotate`] changes something.
    pub fn rests(&self, now: SystemTime) -> Duration {
        let newest = self.content.tickets.first().map_or(0, |ticket| ticket.made);
        Duration::from_secs(newest).saturating_add(SEALS).saturating_sub(since_1970(now)).min(SEALS)
    }

    /// The place of a gateway of `workers` that is started now: behind one that runs, from which it takes over, if that is asked
    /// for and there is one.
    ///
    /// # Errors
    /// See [`KeysError`].
    pub(crate) fn succession(&self, take_over: TakeOver) -> Result<Succession, KeysError> {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.content.reset), b"hvq steering");
        let secret = tag.as_ref().first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        // Connections of a gateway that crashed are reset by one of its generation alone.
        let generation = self.content.holder.map_or(Generation::Even, |holder| holder.generation);
        let alone = Succession { secret, generation, before: 0 };
        let Some(holder) = self.content.holder.filter(|_| take_over == TakeOver::IfThere) else {
            return Ok(alone);
        };
        if !runs(holder.process) {
            return Ok(alone);
        }
        if runs(holder.former) {
            return Err(KeysError::Busy(holder.process, holder.former));
        }
        Ok(Succession { generation: generation.next(), before: holder.workers, ..alone })
    }

    /// Writes down that this process has the addresses now, with so many workers.
    ///
    /// # Errors
    /// See [`KeysError`].
    pub(crate) fn hold(&mut self, succession: Succession, workers: u16) -> Result<(), KeysError> {
        let former = self.content.holder.filter(|_| succession.before > 0).map_or(0, |holder| holder.process);
        let holder =
            Holder { generation: succession.generation, workers, process: std::process::id(), former };
        let next = Content { holder: Some(holder), ..self.content.clone() };
        write(&self.path, &next, Target::Taken).map_err(|source| system(&self.path, source))?;
        self.content = next;
        Ok(())
    }

    /// The key of stateless resets.
    pub(crate) fn reset(&self) -> ResetKey {
        ResetKey::new(&self.content.reset)
    }

    /// The key of address validation tokens.
    pub(crate) fn token(&self) -> TokenKey {
        TokenKey::new(&self.content.token)
    }

    /// The keys of session tickets.
    pub(crate) fn tickets(&self) -> Option<TicketKeys> {
        let (newest, former) = self.content.tickets.split_first()?;
        let former: Vec<_> = former.iter().map(|ticket| ticket.secret).collect();
        Some(TicketKeys::new(&newest.secret, &former))
    }
}

impl Content {
    fn new(now: SystemTime) -> io::Result<Self> {
        Ok(Self {
            reset: random()?,
            token: random()?,
            tickets: vec![Ticket { made: since_1970(now).as_secs(), secret: random()? }],
            holder: None,
        })
    }

    /// Returns the content by `now`, if it changes.
    fn rotated(&self, now: SystemTime) -> io::Result<Option<Self>> {
        let age = |ticket: &Ticket| since_1970(now).saturating_sub(Duration::from_secs(ticket.made));
        let mut tickets: Vec<_> =
            self.tickets.iter().filter(|ticket| age(ticket) < OPENS).take(TICKETS - 1).copied().collect();
        if tickets.first().is_none_or(|newest| age(newest) >= SEALS) {
            tickets.insert(0, Ticket { made: since_1970(now).as_secs(), secret: random()? });
        }
        let next = Self { tickets, ..self.clone() };
        Ok((next != *self).then_some(next))
    }

    fn text(&self) -> String {
        let mut text = format!(
            "# Secret: who has these keys ends connections of the gateway and reads what tickets protect.\n{HEAD}\nreset {}\ntoken {}\n",
            hex(&self.reset),
            hex(&self.token)
        );
        for Ticket { made, secret } in &self.tickets {
            // A string takes whatever is written.
            let _written = writeln!(text, "ticket {made} {}", hex(secret));
        }
        if let Some(Holder { generation, workers, process, former }) = &self.holder {
            let _written = writeln!(text, "holder {} {workers} {process} {former}", generation.bit());
        }
        let sum = digest(&SHA256, text.as_bytes());
        text + &format!("sum {}\n", hex(sum.as_ref()))
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let (body, sum) = text.rsplit_once("sum ").ok_or("its end is missing")?;
        if sum != format!("{}\n", hex(digest(&SHA256, body.as_bytes()).as_ref())) {
            return Err("its sum is wrong");
        }
        let mut lines = body.lines().filter(|line| !line.starts_with('#'));
        if lines.next() != Some(HEAD) {
            return Err("it is no file of keys, or of another version");
        }
        let (mut reset, mut token, mut tickets, mut holder) = (None, None, Vec::new(), None);
        for line in lines {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["reset", secret] => reset = unhex(secret),
                ["token", secret] => token = unhex(secret),
                ["ticket", made, secret] if tickets.len() < TICKETS => {
                    let made = made.parse().map_err(|_| "a key has no time")?;
                    tickets.push(Ticket { made, secret: unhex(secret).ok_or("a key is none")? });
                }
                ["holder", generation, workers, process, former] => {
                    holder = Some(Holder {
                        generation: if generation == "0" { Generation::Even } else { Generation::Odd },
                        workers: workers.parse().map_err(|_| "a number of workers is none")?,
                        process: process.parse().map_err(|_| "a process is none")?,
                        former: former.parse().map_err(|_| "a process is none")?,
                    });
                }
                _ => return Err("a line is none of a key"),
            }
        }
        let missing = "a key is missing";
        Ok(Self { reset: reset.ok_or(missing)?, token: token.ok_or(missing)?, tickets, holder })
    }
}

/// Tells whether a gateway takes the addresses of one that runs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum TakeOver {
    /// No: they have to be free.
    #[default]
    Never,
    /// Its addresses are taken if one runs that has the same keys.
    IfThere,
}

/// Returns true if there is a process of this number.
fn runs(process: u32) -> bool {
    process != 0 && Path::new("/proc").join(process.to_string()).exists()
}

/// Tells whether there may be a file already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    /// It must not be there.
    Free,
    /// It is replaced.
    Taken,
}

fn read(path: &Path) -> Result<Option<Content>, KeysError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(system(path, source)),
    };
    let there = file.metadata().map_err(|source| system(path, source))?;
    check_mode(path, &there)?;
    let damaged = |problem| KeysError::Damaged { file: path.display().to_string(), problem };
    if !there.is_file() || there.len() > LONGEST {
        return Err(damaged("it is no file of keys"));
    }
    let mut text = String::new();
    let taken = io::Read::read_to_string(&mut io::Read::take(file, LONGEST), &mut text);
    taken.map_err(|source| match source.kind() {
        io::ErrorKind::InvalidData => damaged("it is no text"),
        _ => system(path, source),
    })?;
    Content::parse(&text).map(Some).map_err(damaged)
}

#[cfg(unix)]
fn check_mode(path: &Path, there: &fs::Metadata) -> Result<(), KeysError> {
    use std::os::unix::fs::PermissionsExt;
    let mode = there.permissions().mode() & 0o777;
    match mode & 0o077 {
        0 => Ok(()),
        _ => Err(KeysError::Open { file: path.display().to_string(), mode }),
    }
}

#[cfg(not(unix))]
fn check_mode(_: &Path, _: &fs::Metadata) -> Result<(), KeysError> {
    Ok(())
}

/// Writes a file of which, whatever happens meanwhile, nobody ever sees a part.
fn write(path: &Path, content: &Content, place: Target) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = folder_of(path);
    let new = folder.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    // What an earlier process of this number left behind.
    let _missing = fs::remove_file(&new);
    let written = (|| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&new)?;
        file.write_all(content.text().as_bytes())?;
        file.sync_all()?;
        match place {
            // A link, unlike a new name, replaces nothing.
            Target::Free => fs::hard_link(&new, path),
            Target::Taken => fs::rename(&new, path),
        }
    })();
    let _renamed = fs::remove_file(&new);
    written?;
    // The name has to outlive a crash of the machine, too; where folders cannot be opened, it does in a moment.
    File::open(folder).map_or(Ok(()), |folder| folder.sync_all())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn system(path: &Path, source: io::Error) -> KeysError {
    KeysError::System { file: path.display().to_string(), source }
}

fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    let failed = |_| io::Error::other("the system gives no random numbers");
    SystemRandom::new().fill(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn since_1970(now: SystemTime) -> Duration {
    now.duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let bytes: Vec<u8> = digits?.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    (text.len() == 64).then(|| bytes.try_into().ok()).flatten()
}

#[cfg(test)]
mod tests;
