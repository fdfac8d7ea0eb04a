//! The destination of the body of a response.

use super::GetArguments;
use super::target::Target;
use crate::failure::{Exit, Failure, OrFail};
use std::path::PathBuf;
use tokio::fs::File;
use tokio::io::{AsyncWriteExt, BufWriter, Stdout};

/// The place for one body.
#[derive(Debug)]
pub(super) enum Sink {
    /// A file, made when the response has begun.
    Planned(PathBuf),
    /// A file.
    File(PathBuf, BufWriter<File>),
    /// Standard output.
    Output(Stdout),
    /// Nowhere.
    Nowhere,
}

/// The place for the body of the URL number `index`.
pub(super) fn open(arguments: &GetArguments, target: &Target, index: usize) -> Result<Sink, Failure> {
    if arguments.sink.remote_name {
        return Ok(Sink::Planned(target.file_name()?.into()));
    }
    Ok(match arguments.sink.output.get(index) {
        Some(path) if path.as_os_str() == "-" => Sink::Output(tokio::io::stdout()),
        Some(path) => Sink::Planned(path.clone()),
        None if arguments.format.json => Sink::Nowhere,
        None => Sink::Output(tokio::io::stdout()),
    })
}

impl Sink {
    /// Writes the next part of the body.
    pub(super) async fn write(&mut self, part: &[u8]) -> Result<(), Failure> {
        self.begin().await?;
        let written = match self {
            Self::File(_, file) => file.write_all(part).await,
            Self::Output(output) => output.write_all(part).await,
            Self::Planned(_) | Self::Nowhere => Ok(()),
        };
        written.or_fail(Exit::Runtime, || format!("cannot write to {}", self.name()))
    }

    /// Makes what was written safe from the end of the program; an empty body makes an empty file.
    pub(super) async fn finish(&mut self) -> Result<(), Failure> {
        self.begin().await?;
        let flushed = match self {
            Self::File(_, file) => file.flush().await,
            Self::Output(output) => output.flush().await,
            Self::Planned(_) | Self::Nowhere => Ok(()),
        };
        flushed.or_fail(Exit::Runtime, || format!("cannot write to {}", self.name()))
    }

    /// Returns true if a progress bar would be in the way of the body.
    pub(super) fn is_output(&self) -> bool {
        matches!(self, Self::Output(_))
    }

    async fn begin(&mut self) -> Result<(), Failure> {
        if let Self::Planned(path) = self {
            let path = std::mem::take(path);
            let file = File::create(&path)
                .await
                .or_fail(Exit::Runtime, || format!("cannot write to {}", path.display()))?;
            *self = Self::File(path, BufWriter::new(file));
        }
        Ok(())
    }

    fn name(&self) -> String {
        match self {
            Self::Planned(path) | Self::File(path, _) => path.display().to_string(),
            Self::Output(_) | Self::Nowhere => "standard output".to_owned(),
        }
    }
}
