//! The runs of an experiment.

use super::record::{Key, Record, basis};
use crate::experiment::controllers;
use crate::experiment::definition::{
    Axis, Cell, Definition, FlowWorkload, Labelled, Quick, VideoWorkload, Workload,
};
use crate::experiment::pages::{Channels, Order, PageOutcome, PageRun, Sizes, part, seed_of, stretch};
use crate::experiment::video;
use crate::pages::Page;
use crate::workload::page_load::{Interaction, Manner, single, upload};
use hvq_emulation::samples::quantile;
use hvq_emulation::{ChannelSpec, Direction, Probability, Rate, TraceError};
use hvq_video::clip::Clip;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The part of an experiment that is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scope {
    /// All of it.
    #[default]
    Whole,
    /// All of it with so many repetitions.
    Repetitions(u32),
    /// A first look, as the file describes it.
    Quick,
}

/// A share of the runs of an experiment, for one of several machines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// Its number, from 1 on.
    pub number: usize,
    /// The number of shares.
    pub of: usize,
}

impl Shard {
    /// Everything.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Those of `tasks` that are part of it: runs that are compared stand together and are dealt out in turn, so that shares
    /// take about the same time.
    pub fn part(self, tasks: Vec<Task>) -> Vec<Task> {
        let own = self.number.saturating_sub(1);
        let dealt = tasks.into_iter().enumerate().filter(|(index, _)| index % self.of.max(1) == own);
        dealt.map(|(_, task)| task).collect()
    }
}

/// Reads `I/N`, such as `3/8`.
impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (number, of) = text.split_once('/')?;
            let (number, of): (usize, usize) = (number.parse().ok()?, of.parse().ok()?);
            (1 <= number && number <= of).then_some(Self { number, of })
        };
        read().ok_or_else(|| format!("{text:?} is no share of the runs such as 3/8"))
    }
}

/// A run.
#[derive(Clone, Debug)]
pub struct Task {
    /// The key of the run.
    pub key: Key,
    cell: Cell,
    subject: usize,
}

/// Factors on what was recorded of a page.
#[derive(Clone, Copy, Debug)]
struct Scales {
    /// On thinking times of the browser.
    think: f64,
    /// On sizes of responses.
    size: f64,
    /// On times that servers take.
    wait: f64,
}

impl Scales {
    /// Factors that leave a page as it was recorded.
    const NONE: Self = Self { think: 1.0, size: 1.0, wait: 1.0 };
}

/// The runs of `definition` within `scope`: what is compared stands together.
pub fn tasks(definition: &Definition, scope: Scope) -> Vec<Task> {
    let subjects = definition.workload.subjects();
    let quick = match scope {
        Scope::Quick => definition.quick.clone(),
        Scope::Whole => Quick::all(definition.stretches),
        Scope::Repetitions(number) => Quick::all(number),
    };
    let axes = definition.matrix.varied();
    let mut tasks = Vec::new();
    for cell in definition.matrix.cells().into_iter().filter(|cell| quick.has(&definition.matrix, *cell)) {
        let labels: BTreeMap<_, _> =
            axes.iter().map(|axis| (*axis, definition.matrix.label(cell, *axis).to_owned())).collect();
        for (subject, name) in subjects.iter().enumerate().take(quick.subjects) {
            for stretch in 0..quick.stretches {
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
                let page = &workload.pages[self.subject];
                let size_scale = match workload.sizes {
                    Sizes::Captured => 1.0,
                    Sizes::Paper => page.paper_size_scale.unwrap_or(1.0),
                };
                let scales = Scales { think: workload.think, size: size_scale, wait: workload.waits };
                let run = self.page_run(definition, page, scales)?;
                let (values, failure) = measured(definition, run.outcome()?);
                Ok(self.record(definition, values, failure))
            }
            Workload::Download(_) => self.transfer(definition, Direction::Down),
            Workload::Upload(_) => self.transfer(definition, Direction::Up),
            Workload::Interaction(_) => self.interaction(definition),
            Workload::Flow(workload) => self.flow(definition, workload),
            Workload::Video(workload) => self.video(definition, workload),
        }
    }

    /// One object of the cell's size, `direction` the way that it goes.
    fn transfer(&self, definition: &Definition, direction: Direction) -> Result<Record, TraceError> {
        let size = definition.matrix.size[self.cell.at(Axis::Size)].is.0;
        let page = match direction {
            Direction::Down => single(size),
            Direction::Up => upload(size),
        };
        let run = self.page_run(definition, &Arc::new(page), Scales::NONE)?;
        let outcome = run.outcome()?;
        let carried = outcome.embb.towards(direction) + outcome.urllc.towards(direction);
        let progress = outcome.progress_ms.clone();
        let (mut values, failure) = measured(definition, outcome);
        if let Some(time) = values.get(definition.workload.measured()).copied() {
            let rate = |bytes: u64| bytes as f64 * 8.0 / (time * 1e3);
            values.insert("goodput_mbit".to_owned(), rate(size));
            if let Some(capacity) = capacity(&run.channels, direction) {
                values.insert("capacity_percent".to_owned(), 100.0 * rate(size) / capacity);
                // With headers and tags, which the channels carry too: what is missing here was not sent.
                values.insert("carried_percent".to_owned(), rounded(100.0 * rate(carried) / capacity));
            }
        }
        values.extend((0..).zip(progress).map(|(part, time)| (progress_name(part), time)));
        Ok(self.record(definition, values, failure))
    }

    fn interaction(&self, definition: &Definition) -> Result<Record, TraceError> {
        let interaction = definition.matrix.interaction[self.cell.at(Axis::Interaction)].is;
        let run = self.page_run(definition, &Arc::new(interaction.page()), Scales::NONE)?;
        let outcome = run.outcome()?;
        let slow = longest_share(&outcome.ends_ms, 0.95);
        let (mut values, failure) = measured(definition, outcome);
        let time = values.get(definition.workload.measured()).copied();
        if let (Some(time), Interaction::Exchanges { number, .. }) = (time, interaction) {
            values.insert("exchange_ms".to_owned(), rounded(time / f64::from(number)));
            values.extend(slow.map(|slow| ("exchange_p95_ms".to_owned(), rounded(slow))));
        }
        Ok(self.record(definition, values, failure))
    }

    /// A download without end (HotNets 2023, Fig. 1).
    fn flow(&self, definition: &Definition, workload: &FlowWorkload) -> Result<Record, TraceError> {
        let Channels { name, embb, urllc } = self.channels(definition)?;
        let run = controllers::ControllerRun {
            setting: controllers::Setting { name, embb, urllc },
            controller: definition.matrix.controller[self.cell.at(Axis::Controller)].is,
            arrangement: controllers::Arrangement::of(self.key.scheme)
                .unwrap_or(controllers::Arrangement::Single),
            time: Duration::from_secs(workload.seconds.into()),
            seed: self.seed(definition),
        };
        let outcome = run.outcome()?;
        // Mbit/s over so many seconds, in bytes.
        let bytes = outcome.throughput * outcome.seconds * 1e6 / 8.0;
        let urllc_bytes = (outcome.urllc_share * bytes).round();
        let values = [
            ("goodput_mbit", outcome.goodput),
            ("capacity_percent", rounded(100.0 * outcome.goodput / outcome.capacity.max(f64::MIN_POSITIVE))),
            ("rtt_p50_ms", outcome.rtt.p50),
            ("rtt_p95_ms", outcome.rtt.p95),
            ("lost_packets", outcome.lost as f64),
            ("urllc_bytes", urllc_bytes),
            ("embb_bytes", bytes.round() - urllc_bytes),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value)).into();
        Ok(self.record(definition, values, outcome.failure))
    }

    /// A video, on the part of the trace that follows that of the repetition before (HotNets 2023, Fig. 2).
    fn video(&self, definition: &Definition, workload: &VideoWorkload) -> Result<Record, TraceError> {
        let time = Duration::from_secs(workload.seconds.into());
        let mut channels = self.channels(definition)?;
        channels.embb = part(&channels.embb, definition.half, (self.key.stretch, time))?;
        let clip = Clip::builtin(&self.key.subject).expect("the clip is compiled in");
        let run = video::VideoRun {
            clip: Arc::new(clip),
            channels,
            scheme: video::VideoScheme::Transport(self.key.scheme, workload.tell),
            frames: video::frames(time),
            repetition: self.key.stretch,
            seed: self.seed(definition),
        };
        let outcome = run.outcome()?;
        let mut values = outcome.values();
        values.insert("embb_bytes".to_owned(), outcome.embb.bytes() as f64);
        values.insert("urllc_bytes".to_owned(), outcome.urllc.bytes() as f64);
        Ok(self.record(definition, values, outcome.failure))
    }

    /// The load of `page` with these factors on what was recorded.
    fn page_run(
        &self,
        definition: &Definition,
        page: &Arc<Page>,
        scales: Scales,
    ) -> Result<PageRun, TraceError> {
        let (matrix, at) = (&definition.matrix, |axis| self.cell.at(axis));
        Ok(PageRun {
            page: page.clone(),
            manner: Manner {
                deployment: matrix.deployment[at(Axis::Deployment)].is,
                voice: matrix.voice[at(Axis::Voice)].is,
                think_scale: scales.think,
                wait_scale: scales.wait,
                size_scale: scales.size,
                background: matrix.background[at(Axis::Background)].is,
                connections: 1,
            },
            channels: self.channels(definition)?,
            belief: matrix.belief[at(Axis::Belief)].is,
            order: self.order(definition),
            scheme: self.key.scheme,
            congestion: matrix.controller[at(Axis::Controller)].is,
            repetition: self.key.stretch,
            notes: definition.notes,
            seed: self.seed(definition),
        })
    }

    /// The order in which connections are told of eMBB and URLLC. Ordinary links change places instead: what stands in
    /// the place of URLLC comes first.
    fn order(&self, definition: &Definition) -> Order {
        let (matrix, at) = (&definition.matrix, |axis| self.cell.at(axis));
        match matrix.links[at(Axis::Links)].is.is_channels() {
            true => matrix.order[at(Axis::Order)].is,
            false => Order::Given,
        }
    }

    /// The ordinary links of the device as channels, if it has such.
    fn links(&self, definition: &Definition, place: u64) -> Option<Channels> {
        let (matrix, at) = (&definition.matrix, |axis| self.cell.at(axis));
        let Labelled { label, is } = &matrix.links[at(Axis::Links)];
        let [first, second, ..] = &is.drawn(place)[..] else { return None };
        let [urllc, embb] = matrix.order[at(Axis::Order)].is.of([second, first]);
        let loss = matrix.loss[at(Axis::Loss)].is;
        Some(Channels { name: label.clone(), embb: lossy(embb, loss), urllc: lossy(urllc, loss) })
    }

    /// The channels, eMBB's trace begun where it is to be: downloads of all sizes, say, begin on the same stretch.
    fn channels(&self, definition: &Definition) -> Result<Channels, TraceError> {
        let (matrix, at) = (&definition.matrix, |axis| self.cell.at(axis));
        let loss = matrix.loss[at(Axis::Loss)].is;
        let embb = &matrix.embb[at(Axis::Embb)];
        let place = seed_of(definition.half.seed(definition.seed), &self.key.subject, self.key.stretch);
        if let Some(links) = self.links(definition, place) {
            return Ok(links);
        }
        Ok(Channels {
            name: embb.label.clone(),
            embb: stretch(&lossy(&embb.is, loss), place, definition.half)?,
            urllc: lossy(&matrix.urllc[at(Axis::Urllc)].is, loss),
        })
    }

    fn seed(&self, definition: &Definition) -> u64 {
        definition.half.seed(definition.seed).wrapping_add(self.key.stretch.into())
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

/// Returns the measured values of a run of `definition`, by name, and the reason for its failure, if it failed.
fn measured(definition: &Definition, outcome: PageOutcome) -> (BTreeMap<String, f64>, Option<String>) {
    let bytes = [("embb_bytes", outcome.embb), ("urllc_bytes", outcome.urllc)];
    let mut values: BTreeMap<String, f64> =
        bytes.into_iter().map(|(name, used)| (name.to_owned(), used.bytes() as f64)).collect();
    values.extend(outcome.noted);
    values.extend(outcome.plt_ms.map(|time| (definition.workload.measured().to_owned(), time)));
    (values, outcome.failure)
}

/// The time that `share` of exchanges one after another do not exceed, which were complete at `ends`.
fn longest_share(ends: &[f64], share: f64) -> Option<f64> {
    let begins = std::iter::once(&0.0).chain(ends);
    let mut times: Vec<f64> = begins.zip(ends).map(|(begin, end)| end - begin).collect();
    times.sort_by(f64::total_cmp);
    quantile(&times, share)
}

/// The name under which runs note the time at which part number `part` of the content had arrived; part 0 is the first
/// byte.
pub fn progress_name(part: u32) -> String {
    format!("progress_{part:02}_ms")
}

/// `value` to three places: results are written as text and read again, and what is short comes back as it was.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Returns the rate of both channels together in `direction`, in Mbit/s; `None` if that varies or has no limit.
fn capacity(channels: &Channels, direction: Direction) -> Option<f64> {
    let rate = |channel: &ChannelSpec| {
        let link = match direction {
            Direction::Up => &channel.up,
            Direction::Down => &channel.down,
        };
        match link.rate {
            Rate::Constant(rate) if link.collapses.is_empty() => Some(rate.bits_per_second() as f64 / 1e6),
            Rate::Constant(_) | Rate::Unlimited | Rate::Trace(_) => None,
        }
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
