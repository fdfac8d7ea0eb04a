//! From text to an experiment.

use super::Definition;
use super::check::{CheckContext, GoalText, Place, Problem};
use super::expected::{Goal, Plot, Published};
use super::half::Half;
use super::matrix::Matrix;
use super::quick::Quick;
use super::workload::{
    DownloadWorkload, FlowWorkload, InteractionWorkload, PageText, UploadWorkload, VideoWorkload, Workload,
};
use crate::experiment::pages::{Notes, Scheme};
use hvq_emulation::configuration::ConfigError;
use serde::Deserialize;
use std::path::Path;
use toml::Spanned;

/// Repetitions where a file does not say how many: those of NSDI 2023, §5.2.
const STRETCHES: u32 = 5;
/// More than these are a mistake.
const MOST_STRETCHES: u32 = 1000;

/// A file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    name: Spanned<String>,
    title: String,
    source: String,
    #[serde(default)]
    differs: String,
    schemes: Spanned<Vec<Scheme>>,
    stretches: Option<Spanned<u32>>,
    #[serde(default)]
    quick: Quick,
    seed: Option<u64>,
    #[serde(default)]
    half: Half,
    page: Option<PageText>,
    download: Option<DownloadWorkload>,
    upload: Option<UploadWorkload>,
    interaction: Option<InteractionWorkload>,
    flow: Option<FlowWorkload>,
    video: Option<VideoWorkload>,
    #[serde(default)]
    matrix: Matrix,
    #[serde(default)]
    plot: Plot,
    #[serde(default)]
    published: Vec<Published>,
    #[serde(default)]
    goals: Vec<Spanned<GoalText>>,
}

impl Definition {
    /// The experiment in the file at `path`.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::Unreadable { file: file.clone(), problem: error.to_string() })?;
        Self::parse(&file, &text)
    }

    /// The experiment in `text`, which errors call `file`.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let read: Text = toml::from_str(text)
            .map_err(|error| ConfigError::at(file, text, error.span(), error.message()))?;
        checked(read).map_err(|Problem(place, problem)| match place {
            Place::Span(span) => ConfigError::at(file, text, Some(span), problem),
            Place::Field(name) => ConfigError::in_field(file, text, name, problem),
        })
    }
}

fn checked(read: Text) -> Result<Definition, Problem> {
    check_head(&read)?;
    let check = CheckContext { schemes: &read.schemes, matrix: &read.matrix };
    check.lists()?;
    check.selection(&read.quick.at)?;
    check.plot(&read.plot)?;
    read.published.iter().try_for_each(|published| check.published(published))?;
    let goals: Result<Vec<Goal>, Problem> = read.goals.iter().map(|goal| check.goal(goal)).collect();
    let goals = goals?;
    let workloads = [
        read.page.map(|page| page.of(read.half).map(Workload::Page)),
        read.download.map(|download| Ok(Workload::Download(download))),
        read.upload.map(|upload| Ok(Workload::Upload(upload))),
        read.interaction.map(|interaction| Ok(Workload::Interaction(interaction))),
        read.flow.map(|flow| Ok(Workload::Flow(flow))),
        read.video.map(|video| Ok(Workload::Video(video))),
    ];
    let mut workloads = workloads.into_iter().flatten();
    let (Some(workload), None) = (workloads.next(), workloads.next()) else {
        let problem = "one workload is needed: the table [page], [download], [upload], [interaction], [flow] or [video]";
        return Err(Problem(Place::Field("name"), problem.to_owned()));
    };
    let workload = workload?;
    check.workload(&workload)?;
    let (seed, half) = (read.seed.unwrap_or(1), read.half);
    let traces = check.traces()?;
    let notes = notes(&read.plot, &read.published);
    let digest = digest(&format!("{workload:?} {:?} {half} {seed} {notes:?} {traces:?}", read.matrix));
    Ok(Definition {
        name: read.name.into_inner(),
        title: read.title,
        source: read.source,
        differs: read.differs,
        schemes: read.schemes.into_inner(),
        stretches: read.stretches.map_or(STRETCHES, Spanned::into_inner),
        quick: read.quick,
        half,
        seed,
        notes,
        workload,
        matrix: read.matrix,
        plot: read.plot,
        published: read.published,
        goals,
        digest,
    })
}

/// Returns the notes that runs have to take for the drawing.
fn notes(plot: &Plot, published: &[Published]) -> Notes {
    let mut measures = published.iter().map(|published| &published.measure).chain([&plot.measure]);
    match measures.any(|measure| measure.name().starts_with("reward_error")) {
        true => Notes::Rewards,
        false => Notes::Few,
    }
}

/// Checks the name and the number of repetitions.
fn check_head(read: &Text) -> Result<(), Problem> {
    let is_plain = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    };
    if !is_plain(read.name.get_ref()) {
        return Err(Problem::at(&read.name, "a name has lower-case letters, digits and hyphens"));
    }
    match &read.stretches {
        Some(number) if !(1..=MOST_STRETCHES).contains(number.get_ref()) => {
            Err(Problem::at(number, format!("from 1 to {MOST_STRETCHES}")))
        }
        _ => Ok(()),
    }
}

/// FNV-1a, which is the same on every machine and with every compiler.
pub(super) fn digest(text: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}
