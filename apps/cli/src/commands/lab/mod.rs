//! `hvq lab`: experiments in virtual time.

mod controllers;

use crate::failure::Failure;
use crate::output::Voice;
use clap::{Args, Subcommand};
use controllers::ControllersArguments;

/// Arguments of `hvq lab`.
#[derive(Debug, Args)]
pub(crate) struct LabArguments {
    #[command(subcommand)]
    experiment: Experiment,
}

/// The experiments.
#[derive(Debug, Subcommand)]
enum Experiment {
    /// Congestion controllers over eMBB and URLLC: eMBB alone, steered below the transport, and as two paths
    Controllers(ControllersArguments),
}

/// Runs the experiment.
pub(crate) fn run(arguments: &LabArguments, voice: Voice) -> Result<(), Failure> {
    match &arguments.experiment {
        Experiment::Controllers(arguments) => controllers::run(arguments, voice),
    }
}
