//! Tools of the system that read what to do from their standard input.

use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Runs the command `name` with `arguments`, and `text` as its input. `package` is where distributions have it.
///
/// # Errors
/// The command is not there, which the message says with its package, or it failed, with what it said.
pub fn feed((name, package): (&str, &str), arguments: &[&str], text: &str) -> io::Result<()> {
    let started = Command::new(name)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = started.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(
            error.kind(),
            format!(
                "the command `{name}` is not there: install {package} (Debian, Ubuntu, Fedora, Arch: package {package})"
            ),
        ),
        _ => error,
    })?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(text.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    Err(io::Error::other(format!("{name}: {said}")))
}
