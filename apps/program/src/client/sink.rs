//! The destination of the body of a response.

use crate::failure::{Exit, Failure, OrFail};
use std::path::PathBuf;
use tokio::fs::File;
use tokio::io::{AsyncWriteExt, BufWriter, Stdout};

/// The place for one body.
#[derive(Debug)]
pub enum Sink {
    /// A file, made when the response has begun.
    Planned(PathBuf),
    /// A file.
    File(PathBuf, BufWriter<File>),
    /// Standard output.
    Output(Stdout),
    /// Nowhere.
    Nowhere,
}

impl Sink {
    /// Writes the next part of the body.
    pub async fn write(&mut self, part: &[u8]) -> Result<(), Failure> {
        self.begin().await?;
        let written = match self {
            Self::File(_, file) => file.write_all(part).await,
            Self::Output(output) => output.write_all(part).await,
            Self::Planned(_) | Self::Nowhere => Ok(()),
        };
        written.or_fail(Exit::Runtime, || format!("cannot write to {}", self.name()))
    }

    /// Makes what was written safe from the end of the program; an empty body makes an empty file.
    pub async fn finish(&mut self) -> Result<(), Failure> {
        self.begin().await?;
        let flushed = match self {
            Self::File(_, file) => file.flush().await,
            Self::Output(output) => output.flush().await,
            Self::Planned(_) | Self::Nowhere => Ok(()),
        };
        flushed.or_fail(Exit::Runtime, || format!("cannot write to {}", self.name()))
    }

    /// Returns true if a progress bar would be in the way of the body.
    pub fn is_output(&self) -> bool {
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
