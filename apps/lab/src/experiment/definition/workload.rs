//! Workloads: the traffic that runs over the channels.

use super::axis::Axis;
use super::check::{Place, Problem};
use super::half::Half;
use crate::experiment::controllers::Arrangement;
use crate::experiment::pages::{Scheme, Sizes};
use crate::pages::{Page, THINK_SCALE, builtin};
use crate::workload::page_load::single;
use crate::workload::video;
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use std::fmt;
use std::sync::Arc;
use toml::Spanned;

/// The workload that runs over the channels.
#[derive(Clone, Debug)]
pub enum Workload {
    /// Pages are loaded; the page load time in milliseconds is measured.
    Page(PageWorkload),
    /// One object of each size is fetched; how long that takes is measured, in milliseconds.
    Download(DownloadWorkload),
    /// One object of each size is sent; the time until its answer is there is measured, in milliseconds.
    Upload(UploadWorkload),
    /// A person does something with an app; how long it takes to answer is measured, in milliseconds.
    Interaction(InteractionWorkload),
    /// A download without end; its goodput in Mbit/s is measured.
    Flow(FlowWorkload),
    /// Real-time video in layers; how old 95 % of its frames are at most when they are shown is measured, in milliseconds.
    Video(VideoWorkload),
}

/// Downloads: sizes are what is varied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DownloadWorkload {}

/// Uploads: sizes are what is varied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UploadWorkload {}

/// Interactions with apps: which ones is what is varied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InteractionWorkload {}

/// A download without end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowWorkload {
    /// The time for which it is watched, in virtual seconds, the handshake included.
    #[serde(deserialize_with = "seconds")]
    pub seconds: u32,
}

/// Real-time video in layers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoWorkload {
    /// Its duration, in virtual seconds: its repetitions follow one another in the trace.
    #[serde(deserialize_with = "seconds")]
    pub seconds: u32,
    /// The information about layers for the transport.
    #[serde(deserialize_with = "told")]
    pub tell: video::MessageHints,
}

fn told<'de, D: Deserializer<'de>>(deserializer: D) -> Result<video::MessageHints, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "nothing" => Ok(video::MessageHints::Silent),
        "priorities" => Ok(video::MessageHints::Priorities),
        "deadlines" => Ok(video::MessageHints::Deadlines),
        other => Err(de::Error::custom(format!(
            "{other:?} is nothing that can be told: choose nothing, priorities or deadlines"
        ))),
    }
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let seconds = u32::deserialize(deserializer)?;
    let wrong = || de::Error::custom(format!("{seconds} is no number of seconds from 1 to 600"));
    if (1..=600).contains(&seconds) { Ok(seconds) } else { Err(wrong()) }
}

/// The direction of the better values of a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// Less is better, as of times.
    Less,
    /// More is better, as of rates.
    More,
}

impl Workload {
    /// Returns the direction of the better values.
    pub const fn better(&self) -> Better {
        match self {
            Self::Page(_) | Self::Download(_) | Self::Upload(_) | Self::Interaction(_) | Self::Video(_) => {
                Better::Less
            }
            Self::Flow(_) => Better::More,
        }
    }

    /// Returns the name under which runs note the workload's main measurement.
    pub const fn measured(&self) -> &'static str {
        match self {
            Self::Page(_) => "plt_ms",
            Self::Download(_) | Self::Upload(_) | Self::Interaction(_) => "time_ms",
            Self::Flow(_) => "goodput_mbit",
            Self::Video(_) => "latency_p95_ms",
        }
    }

    /// Returns the name of that measurement, in words.
    pub const fn measured_in_words(&self) -> &'static str {
        match self {
            Self::Page(_) => "page load time in ms",
            Self::Download(_) => "download time in ms",
            Self::Upload(_) => "upload time in ms",
            Self::Interaction(_) => "response time in ms",
            Self::Flow(_) => "goodput in Mbit/s",
            Self::Video(_) => "95th percentile of the latency of frames in ms",
        }
    }

    /// Returns the names of the other measurements that runs note and that are always shown.
    pub const fn noted(&self) -> &'static [&'static str] {
        match self {
            // Those of steerers are shown where an experiment is about them.
            Self::Page(_) | Self::Interaction(_) => &[],
            Self::Download(_) | Self::Upload(_) => &["goodput_mbit", "capacity_percent", "carried_percent"],
            Self::Flow(_) => &["capacity_percent", "rtt_p50_ms", "rtt_p95_ms", "lost_packets"],
            Self::Video(_) => &[
                "latency_p50_ms",
                "latency_p99_ms",
                "latency_p999_ms",
                "longest_gap_ms",
                "quality_percent",
                "ssim",
                "freezes",
                "frozen_percent",
                "base_only_percent",
            ],
        }
    }

    /// Returns the names of the subjects, which are run one by one.
    pub fn subjects(&self) -> Vec<String> {
        match self {
            Self::Page(workload) => workload.pages.iter().map(|page| page.id.clone()).collect(),
            Self::Download(_) => vec!["download".to_owned()],
            Self::Upload(_) => vec!["upload".to_owned()],
            Self::Interaction(_) => vec!["interaction".to_owned()],
            Self::Flow(_) => vec!["flow".to_owned()],
            Self::Video(_) => vec!["bunny".to_owned()],
        }
    }

    /// Returns the axes along which it can be varied.
    pub const fn axes(&self) -> &'static [Axis] {
        use Axis::{
            Background, Belief, Controller, Deployment, Embb, Interaction, Links, Loss, Order, Size, Urllc,
            Voice,
        };
        match self {
            Self::Page(_) => {
                &[Deployment, Embb, Urllc, Links, Order, Loss, Controller, Voice, Belief, Background]
            }
            Self::Download(_) | Self::Upload(_) => {
                &[Deployment, Embb, Urllc, Links, Order, Loss, Controller, Belief, Background, Size]
            }
            Self::Interaction(_) => &[
                Deployment,
                Embb,
                Urllc,
                Links,
                Order,
                Loss,
                Controller,
                Voice,
                Belief,
                Background,
                Interaction,
            ],
            Self::Flow(_) => &[Embb, Urllc, Loss, Controller],
            Self::Video(_) => &[Embb, Urllc, Loss],
        }
    }

    /// Returns true if `scheme` can be used for it.
    pub fn takes(&self, scheme: Scheme) -> bool {
        match self {
            Self::Page(_) | Self::Download(_) | Self::Upload(_) | Self::Interaction(_) | Self::Video(_) => {
                true
            }
            Self::Flow(_) => Arrangement::of(scheme).is_some(),
        }
    }
}

/// Page loads.
#[derive(Clone, Debug)]
pub struct PageWorkload {
    /// The pages.
    pub pages: Vec<Arc<Page>>,
    /// The sizes of the pages.
    pub sizes: Sizes,
    /// The factor on recorded thinking times of the browser.
    pub think: f64,
    /// The factor on recorded times that servers take.
    pub waits: f64,
}

/// Page loads as they are written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageText {
    pages: Spanned<PageSet>,
    #[serde(default = "paper", deserialize_with = "sizes")]
    sizes: Sizes,
    #[serde(default = "think", deserialize_with = "factor")]
    think: f64,
    #[serde(default, deserialize_with = "some_factor")]
    waits: Option<f64>,
    /// Hosts that pages are spread over, if not those of the capture.
    hosts: Option<Spanned<u32>>,
}

impl PageText {
    /// The workload with pages of `half`, where the text has but a number.
    pub(super) fn of(self, half: Half) -> Result<PageWorkload, Problem> {
        let Self { pages, sizes, think, waits, hosts } = self;
        let span = pages.span();
        let mut usual = 1.0;
        let pages = match pages.into_inner() {
            PageSet::Names(pages) => pages,
            PageSet::Number(number) => {
                let known = half.pages();
                usual = half.wait_scale();
                let count = usize::try_from(number).ok().filter(|count| (1..=known.len()).contains(count));
                let problem =
                    || format!("from 1 to {} pages are compiled in of the {half} half", known.len());
                let count = count.ok_or_else(|| Problem(Place::Span(span), problem()))?;
                known.into_iter().take(count).map(Arc::new).collect()
            }
        };
        let pages = match hosts {
            None => pages,
            Some(hosts) => {
                let number = *hosts.get_ref();
                if !(2..=MOST_HOSTS).contains(&number) {
                    return Err(Problem::at(&hosts, format!("from 2 to {MOST_HOSTS}")));
                }
                pages.iter().map(|page| Arc::new(page.spread(number))).collect()
            }
        };
        Ok(PageWorkload { pages, sizes, think, waits: waits.unwrap_or(usual) })
    }
}

/// More hosts than this are no page.
const MOST_HOSTS: u32 = 500;

const fn think() -> f64 {
    THINK_SCALE
}

const fn paper() -> Sizes {
    Sizes::Paper
}

fn sizes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Sizes, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "captured" => Ok(Sizes::Captured),
        "paper" => Ok(Sizes::Paper),
        other => Err(de::Error::custom(format!("{other:?} is no choice of sizes: choose captured or paper"))),
    }
}

fn factor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let factor = f64::deserialize(deserializer)?;
    let wrong = || de::Error::custom(format!("{factor} is no factor from 0 to 10"));
    if (0.0..=10.0).contains(&factor) { Ok(factor) } else { Err(wrong()) }
}

fn some_factor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    factor(deserializer).map(Some)
}

/// Pages: in a file so many of those compiled in, or a list of names of those and of files.
#[derive(Clone, Debug)]
enum PageSet {
    Number(i64),
    Names(Vec<Arc<Page>>),
}

impl<'de> Deserialize<'de> for PageSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrNames)
    }
}

/// Reads both forms.
struct NumberOrNames;

impl<'de> Visitor<'de> for NumberOrNames {
    type Value = PageSet;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number of pages, or a list of their names")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<PageSet, E> {
        Ok(PageSet::Number(number))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<PageSet, A::Error> {
        let mut pages = Vec::new();
        while let Some(name) = names.next_element::<String>()? {
            pages.push(Arc::new(page(&name).map_err(de::Error::custom)?));
        }
        if pages.is_empty() {
            return Err(de::Error::custom("at least one page is needed"));
        }
        Ok(PageSet::Names(pages))
    }
}

/// The page `name`: compiled in, one object as in `object:182000`, or else a file.
fn page(name: &str) -> Result<Page, String> {
    if let Some(size) = name.strip_prefix("object:") {
        return size.parse().map(single).map_err(|_| format!("{size:?} is no number of bytes"));
    }
    match builtin::page(name) {
        Some(page) => Ok(page),
        None => Page::read(name).map_err(|error| {
            let known = builtin::ids().collect::<Vec<_>>().join(", ");
            format!("{error}; the pages compiled in are {known}")
        }),
    }
}
