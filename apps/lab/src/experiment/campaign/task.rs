//! The runs of an experiment.

use super::record::{Key, Record, basis};
use crate::experiment::definition::{Axis, Cell, Definition, Workload};
use crate::experiment::pages::{Channels, Run, Sizes, seed_of, stretch};
use crate::workload::page_load::{Manner, single};
use hvq_channel::{ChannelSpec, Probability, Rate, TraceError};
use hvq_pages::Page;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How much of an experiment is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Scope {
    /// Repetitions, if not those of the file.
    pub stretches: Option<u32>,
    /// At most so many pages.
    pub subjects: Option<usize>,
}

impl Scope {
    /// A first look: two pages, one repetition.
    pub const QUICK: Self = Self { stretches: Some(1), subjects: Some(2) };
}

/// A run.
#[derive(Clone, Debug)]
pub struct Task {
    /// Which it is.
    pub key: Key,
    cell: Cell,
    subject: usize,
}

/// The runs of `definition` within `scope`: what is compared stands together.
pub fn tasks(definition: &Definition, scope: Scope) -> Vec<Task> {
    let subjects = definition.workload.subjects();
    let stretches = scope.stretches.unwrap_or(definition.stretches);
    let axes = definition.matrix.varied();
    let mut tasks = Vec::new();
    for cell in definition.matrix.cells() {
        let labels: BTreeMap<_, _> =
            axes.iter().map(|axis| (*axis, definition.matrix.label(cell, *axis).to_owned())).collect();
        for (subject, name) in subjects.iter().enumerate().take(scope.subjects.unwrap_or(usize::MAX)) {
            for stretch in 0..stretches {
                tasks.extend(definition.schemes.iter().map(|scheme| Task {
                    key: Key { cell: labels.clone(), subject: name.clone(), stretch, scheme: *scheme },
                    cell,
                    subject,
                }));
            }
        }
    }
    tasks
}

impl Task {
    /// Runs it. Fails if a trace cannot be read; what happens in the run is part of the record.
    pub fn run(&self, definition: &Definition) -> Result<Record, TraceError> {
        match &definition.workload {
            Workload::Page(workload) => {
                let page = &workload.pages.0[self.subject];
                let size_scale = match workload.sizes {
                    Sizes::Captured => 1.0,
                    Sizes::Paper => page.paper_size_scale.unwrap_or(1.0),
                };
                let run = self.page_run(definition, page, (workload.think, size_scale))?;
                let (values, failure) = self.measured(definition, &run)?;
                Ok(self.record(definition, values, failure))
            }
            Workload::Download(_) => self.download(definition),
        }
    }

    fn download(&self, definition: &Definition) -> Result<Record, TraceError> {
        let size = definition.matrix.size[self.cell.at(Axis::Size)].is.0;
        let run = self.page_run(definition, &Arc::new(single(size)), (1.0, 1.0))?;
        let (mut values, failure) = self.measured(definition, &run)?;
        if let Some(time) = values.get(definition.workload.measured()).copied() {
            let goodput = size as f64 * 8.0 / (time * 1e3);
            values.insert("goodput_mbit".to_owned(), goodput);
            if let Some(capacity) = capacity(&run.channels) {
                values.insert("capacity_percent".to_owned(), 100.0 * goodput / capacity);
            }
        }
        Ok(self.record(definition, values, failure))
    }

    /// What `run` measures, by name, and why it failed, if it did.
    fn measured(
        &self,
        definition: &Definition,
        run: &Run,
    ) -> Result<(BTreeMap<String, f64>, Option<String>), TraceError> {
        let outcome = run.outcome()?;
        let bytes = [("embb_bytes", outcome.embb), ("urllc_bytes", outcome.urllc)];
        let mut values: BTreeMap<String, f64> =
            bytes.into_iter().map(|(name, used)| (name.to_owned(), used.bytes() as f64)).collect();
        values.extend(outcome.noted);
        values.extend(outcome.plt_ms.map(|time| (definition.workload.measured().to_owned(), time)));
        Ok((values, outcome.failure))
    }

    /// The load of `page` with these factors on thinking times and sizes.
    fn page_run(
        &self,
        definition: &Definition,
        page: &Arc<Page>,
        (think_scale, size_scale): (f64, f64),
    ) -> Result<Run, TraceError> {
        let (matrix, at) = (&definition.matrix, |axis| self.cell.at(axis));
        let loss = matrix.loss[at(Axis::Loss)].is;
        let embb = &matrix.embb[at(Axis::Embb)];
        // Downloads of all sizes begin on the same stretch.
        let place = seed_of(definition.seed, &self.key.subject, self.key.stretch);
        Ok(Run {
            page: page.clone(),
            manner: Manner {
                deployment: matrix.deployment[at(Axis::Deployment)].is,
                voice: matrix.voice[at(Axis::Voice)].is,
                think_scale,
                size_scale,
                background: matrix.background[at(Axis::Background)].is.0,
            },
            channels: Channels {
                name: embb.label.clone(),
                embb: stretch(&lossy(&embb.is, loss), place)?,
                urllc: lossy(&matrix.urllc[at(Axis::Urllc)].is, loss),
            },
            belief: matrix.belief[at(Axis::Belief)].is,
            scheme: self.key.scheme,
            congestion: matrix.controller[at(Axis::Controller)].is,
            repetition: self.key.stretch,
            seed: definition.seed.wrapping_add(self.key.stretch.into()),
        })
    }

    fn record(
        &self,
        definition: &Definition,
        values: BTreeMap<String, f64>,
        failure: Option<String>,
    ) -> Record {
        Record { basis: basis(definition), key: self.key.clone(), values, failure }
    }
}

/// What both channels together carry downwards, in Mbit/s; `None` if that varies or has no limit.
fn capacity(channels: &Channels) -> Option<f64> {
    let rate = |channel: &ChannelSpec| match channel.down.rate {
        Rate::Constant(rate) => Some(rate.bits_per_second() as f64 / 1e6),
        Rate::Unlimited | Rate::Trace(_) => None,
    };
    Some(rate(&channels.embb)? + rate(&channels.urllc)?)
}

/// `channel` with random `loss` both ways, if that is any.
fn lossy(channel: &ChannelSpec, loss: Probability) -> ChannelSpec {
    let mut channel = channel.clone();
    if loss != Probability::NEVER {
        (channel.up.loss, channel.down.loss) = (loss, loss);
    }
    channel
}
