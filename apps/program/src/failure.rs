//! Failures, and the exit codes that tell of them.

use hvq::{ConnectionError, DestinationError, DialError, TransportError};
use std::process::ExitCode;

/// The kind of a failure, as the exit code tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// Something failed while running.
    Runtime = 1,
    /// The arguments or what they point to make no sense.
    Usage = 2,
    /// No connection, or it broke.
    Connection = 3,
    /// TLS, mostly the certificate.
    Tls = 4,
    /// The server answered with an error status.
    HttpStatus = 22,
    /// The time was over.
    Timeout = 28,
    /// SIGINT came, as of Ctrl-C, before the end.
    Interrupted = 130,
    /// SIGTERM came before the end.
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The failure of a command.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    error: anyhow::Error,
}

impl Failure {
    /// A failure of kind `exit`, said in `text`.
    pub fn new(exit: Exit, text: impl Into<String>) -> Self {
        Self { exit, error: anyhow::Error::msg(text.into()) }
    }

    /// Its kind.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// Returns the same failure, in the context of `text`.
    pub fn within(self, text: impl Into<String>) -> Self {
        Self { exit: self.exit, error: self.error.context(text.into()) }
    }

    /// The failure and its causes in one line.
    pub fn line(&self) -> String {
        let mut line = String::new();
        for cause in self.error.chain() {
            let text = cause.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
            // Many errors say their cause in their own text already.
            if line.contains(&text) {
                continue;
            }
            if !line.is_empty() {
                line.push_str(": ");
            }
            line.push_str(&text);
        }
        line
    }

    /// Says it on standard error.
    pub fn report(&self) {
        eprintln!("hvq: {}", self.line());
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { exit: Exit::Runtime, error: error.into() }
    }
}

/// Gives an error a kind and a context.
pub trait OrFail<T> {
    /// The value, or a failure of kind `exit` in the context that `text` returns.
    fn or_fail(self, exit: Exit, text: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> OrFail<T> for Result<T, E> {
    fn or_fail(self, exit: Exit, text: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| Failure { exit, error: error.into().context(text()) })
    }
}

impl Failure {
    /// The failure of a dialer that found no connection.
    pub fn of_dial(error: DialError) -> Self {
        let exit = match &error {
            DialError::Destination(DestinationError::Version { .. }) => Exit::Usage,
            DialError::Destination(DestinationError::Resolve { .. }) | DialError::Start { .. } => {
                Exit::Connection
            }
            DialError::Failed { source, .. } => exit_of(source),
        };
        Self::new(exit, error.to_string())
    }
}

/// Returns the exit code for the end of a connection.
pub fn exit_of(error: &ConnectionError) -> Exit {
    match error {
        ConnectionError::Transport(error) | ConnectionError::PeerTransport(error) if is_tls(error) => {
            Exit::Tls
        }
        ConnectionError::IdleTimeout => Exit::Timeout,
        _ => Exit::Connection,
    }
}

/// A CRYPTO_ERROR: 0x0100 to 0x01ff (RFC 9000 §20.1).
fn is_tls(error: &TransportError) -> bool {
    (0x100..=0x1ff).contains(&error.code.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq::ErrorCode;
    use std::io;

    #[test]
    fn a_failure_is_one_line_with_its_causes() {
        let result: Result<(), io::Error> = Err(io::Error::other("disk\n  full"));
        let failure = result.or_fail(Exit::Runtime, || "cannot write x".to_owned()).unwrap_err();
        assert_eq!(failure.line(), "cannot write x: disk full");
        assert_eq!(failure.within("while saving").line(), "while saving: cannot write x: disk full");
    }

    #[test]
    fn a_cause_that_was_already_said_is_not_repeated() {
        let result: Result<(), io::Error> = Err(io::Error::other("in use"));
        let failure = result.or_fail(Exit::Usage, || "cannot bind: in use".to_owned()).unwrap_err();
        assert_eq!(failure.line(), "cannot bind: in use");
        assert_eq!(failure.exit(), Exit::Usage);
    }

    #[test]
    fn alerts_of_tls_and_timeouts_have_exit_codes_of_their_own() {
        let alert = ConnectionError::Transport(ErrorCode::crypto(48).because("unknown authority"));
        assert_eq!(exit_of(&alert), Exit::Tls);
        let refused = ConnectionError::PeerTransport(ErrorCode::CONNECTION_REFUSED.because(""));
        assert_eq!(exit_of(&refused), Exit::Connection);
        assert_eq!(exit_of(&ConnectionError::IdleTimeout), Exit::Timeout);
        assert_eq!(exit_of(&ConnectionError::HandshakeTimeout), Exit::Connection);
    }
}
