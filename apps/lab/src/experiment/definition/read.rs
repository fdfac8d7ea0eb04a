//! From text to an experiment.

use super::Definition;
use super::axis::Axis;
use super::error::DefinitionError;
use super::expected::{Bound, Goal, Operand, Plot, Published, Selection, Wanted};
use super::matrix::Matrix;
use super::measure::Measure;
use super::workload::{DownloadWorkload, PageWorkload, Workload};
use crate::experiment::pages::Scheme;
use serde::Deserialize;
use std::ops::Range;
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
    seed: Option<u64>,
    page: Option<PageWorkload>,
    download: Option<DownloadWorkload>,
    #[serde(default)]
    matrix: Matrix,
    #[serde(default)]
    plot: Plot,
    #[serde(default)]
    published: Vec<Published>,
    #[serde(default)]
    goals: Vec<Spanned<GoalText>>,
}

/// A wish as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GoalText {
    number: u32,
    says: String,
    of: Option<Operand>,
    at_least: Option<Bound>,
    at_most: Option<Bound>,
    near_published: Option<f64>,
    order: Option<Vec<Spanned<Scheme>>>,
    #[serde(default)]
    measure: Measure,
    #[serde(default)]
    at: Selection,
}

/// What is wrong, and where in the text.
type Problem = (Option<Range<usize>>, String);

impl Definition {
    /// The experiment in the file at `path`.
    pub fn read(path: &Path) -> Result<Self, DefinitionError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| DefinitionError::Unreadable {
            file: file.clone(),
            problem: error.to_string(),
        })?;
        Self::parse(&file, &text)
    }

    /// The experiment in `text`, which errors call `file`.
    pub fn parse(file: &str, text: &str) -> Result<Self, DefinitionError> {
        let read: Text = toml::from_str(text)
            .map_err(|error| DefinitionError::at(file, text, error.span(), error.message()))?;
        checked(read).map_err(|(span, problem)| DefinitionError::at(file, text, span, problem))
    }
}

fn checked(read: Text) -> Result<Definition, Problem> {
    let is_plain = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    };
    if !is_plain(read.name.get_ref()) {
        let problem = "a name has lower-case letters, digits and hyphens".to_owned();
        return Err((Some(read.name.span()), problem));
    }
    let stretches = match &read.stretches {
        None => STRETCHES,
        Some(number) if (1..=MOST_STRETCHES).contains(number.get_ref()) => *number.get_ref(),
        Some(number) => return Err((Some(number.span()), format!("from 1 to {MOST_STRETCHES}"))),
    };
    let workload = match (read.page, read.download) {
        (Some(page), None) => Workload::Page(page),
        (None, Some(download)) => Workload::Download(download),
        _ => return Err((None, "one workload is needed: the table [page] or [download]".to_owned())),
    };
    if matches!(workload, Workload::Page(_)) && read.matrix.size.len() > 1 {
        return Err((None, "matrix.size is for downloads: pages have their own sizes".to_owned()));
    }
    let check = Check { schemes: &read.schemes, matrix: &read.matrix };
    check.lists()?;
    check.plot(&read.plot)?;
    read.published.iter().try_for_each(|published| check.published(published))?;
    let goals: Result<Vec<Goal>, Problem> = read.goals.iter().map(|goal| check.goal(goal)).collect();
    let goals = goals?;
    let seed = read.seed.unwrap_or(1);
    let digest = digest(&format!("{workload:?} {:?} {seed}", read.matrix));
    Ok(Definition {
        name: read.name.into_inner(),
        title: read.title,
        source: read.source,
        differs: read.differs,
        schemes: read.schemes.into_inner(),
        stretches,
        seed,
        workload,
        matrix: read.matrix,
        plot: read.plot,
        published: read.published,
        goals,
        digest,
    })
}

/// FNV-1a, which is the same on every machine and with every compiler.
fn digest(text: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// What references in a file are held against.
struct Check<'a> {
    schemes: &'a Spanned<Vec<Scheme>>,
    matrix: &'a Matrix,
}

impl Check<'_> {
    fn lists(&self) -> Result<(), Problem> {
        if self.schemes.get_ref().is_empty() {
            return Err((Some(self.schemes.span()), "at least one scheme is needed".to_owned()));
        }
        match Axis::ALL.into_iter().find(|axis| self.matrix.labels(*axis).is_empty()) {
            Some(axis) => Err((None, format!("matrix.{} needs at least one value", axis.name()))),
            None => Ok(()),
        }
    }

    fn scheme(&self, scheme: &Spanned<Scheme>) -> Result<(), Problem> {
        if self.schemes.get_ref().contains(scheme.get_ref()) {
            return Ok(());
        }
        Err((Some(scheme.span()), format!("{} is not among the schemes", scheme.get_ref())))
    }

    fn label(&self, axis: Axis, label: &Spanned<String>) -> Result<(), Problem> {
        let labels = self.matrix.labels(axis);
        if labels.contains(&label.get_ref().as_str()) {
            return Ok(());
        }
        let problem =
            format!("{:?} is no value of {}: there are {}", label.get_ref(), axis.name(), labels.join(", "));
        Err((Some(label.span()), problem))
    }

    fn selection(&self, selection: &Selection) -> Result<(), Problem> {
        selection.iter().try_for_each(|(axis, label)| self.label(*axis, label))
    }

    fn operand(&self, operand: &Operand) -> Result<(), Problem> {
        self.scheme(&operand.scheme)?;
        self.selection(&operand.at)
    }

    fn bound(&self, bound: &Bound) -> Result<(), Problem> {
        match bound {
            Bound::Number(_) => Ok(()),
            Bound::Of(operand) => self.operand(operand),
        }
    }

    fn plot(&self, plot: &Plot) -> Result<(), Problem> {
        plot.schemes.iter().try_for_each(|scheme| self.scheme(scheme))
    }

    fn published(&self, published: &Published) -> Result<(), Problem> {
        self.scheme(&published.scheme)?;
        self.selection(&published.at)?;
        published.values.keys().try_for_each(|label| self.label(published.along, label))
    }

    fn goal(&self, goal: &Spanned<GoalText>) -> Result<Goal, Problem> {
        let GoalText { number, says, of, at_least, at_most, near_published, order, measure, at } =
            goal.get_ref().clone();
        if let Some(operand) = &of {
            self.operand(operand)?;
        }
        let wanted = match (of, at_least, at_most, near_published, order) {
            (Some(of), Some(bound), None, None, None) => {
                self.bound(&bound)?;
                Wanted::AtLeast(of, bound)
            }
            (Some(of), None, Some(bound), None, None) => {
                self.bound(&bound)?;
                Wanted::AtMost(of, bound)
            }
            (Some(of), None, None, Some(distance), None) => Wanted::NearPublished(of, distance),
            (None, None, None, None, Some(order)) => {
                order.iter().try_for_each(|scheme| self.scheme(scheme))?;
                self.selection(&at)?;
                Wanted::Order(measure, order, at)
            }
            _ => {
                let problem =
                    "a goal has `order`, or `of` with one of `at_least`, `at_most`, `near_published`";
                return Err((Some(goal.span()), problem.to_owned()));
            }
        };
        Ok(Goal { number, says, wanted })
    }
}
