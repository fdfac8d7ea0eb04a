//! `hvq completions` and `hvq manual`: what packages put beside the program, made from its own flags.

use crate::failure::{Exit, Failure};
use crate::output::unwritten;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The arguments of `hvq completions`.
#[derive(Debug, Args)]
#[command(
    after_help = "For a user of bash: hvq completions bash > ~/.local/share/bash-completion/completions/hvq"
)]
pub(crate) struct CompletionsArguments {
    /// The shell that shall complete commands and flags
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// The arguments of `hvq manual`.
#[derive(Debug, Args)]
pub(crate) struct ManualArguments {
    /// The folder for the pages, hvq.1 and one for each command, such as hvq-get.1; it is made if it is missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints a script that completes the commands and flags of `hvq`.
pub(crate) fn complete(arguments: &CompletionsArguments) -> Result<(), Failure> {
    let mut command = crate::arguments::Arguments::command();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "hvq", &mut script);
    io::stdout().write_all(&script).map_err(unwritten)
}

/// Writes a page of the manual for the program and for each command, also those of commands.
pub(crate) fn manual(arguments: &ManualArguments) -> Result<(), Failure> {
    let folder = &arguments.folder;
    let failed = |error: io::Error| {
        Failure::new(Exit::Runtime, format!("cannot write to {}: {error}", folder.display()))
    };
    fs::create_dir_all(folder).map_err(failed)?;
    let mut program = crate::arguments::Arguments::command();
    program.build();
    write_pages(&program, "hvq", folder).map_err(failed)
}

/// Writes the page of `command`, whose words are joined to `name` by hyphens, and those of the commands in it.
fn write_pages(command: &clap::Command, name: &str, folder: &Path) -> io::Result<()> {
    let mut page = Vec::new();
    Man::new(command.clone()).title(name).render(&mut page)?;
    fs::write(folder.join(format!("{name}.1")), page)?;
    command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
        .try_for_each(|inner| write_pages(inner, &format!("{name}-{}", inner.get_name()), folder))
}
