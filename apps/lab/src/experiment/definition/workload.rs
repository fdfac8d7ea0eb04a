//! What runs over the channels.

use crate::experiment::pages::Sizes;
use crate::workload::page_load::single;
use hvq_pages::{Page, THINK_SCALE, builtin};
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use std::fmt;
use std::sync::Arc;

/// What runs over the channels.
#[derive(Clone, Debug)]
pub enum Workload {
    /// Pages are loaded; the page load time in milliseconds is measured.
    Page(PageWorkload),
    /// One object of each size is fetched; how long that takes is measured, in milliseconds.
    Download(DownloadWorkload),
}

/// Downloads: sizes are what is varied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DownloadWorkload {}

/// Which way the better values of a workload are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// Less is better, as of times.
    Less,
    /// More is better, as of rates.
    More,
}

impl Workload {
    /// Which values are the better ones.
    pub const fn better(&self) -> Better {
        match self {
            Self::Page(_) | Self::Download(_) => Better::Less,
        }
    }

    /// What the workload measures, under the name by which runs note it.
    pub const fn measured(&self) -> &'static str {
        match self {
            Self::Page(_) => "plt_ms",
            Self::Download(_) => "time_ms",
        }
    }

    /// What that is, in words.
    pub const fn measured_in_words(&self) -> &'static str {
        match self {
            Self::Page(_) => "page load time in ms",
            Self::Download(_) => "download time in ms",
        }
    }

    /// What runs note besides and is always shown, by name.
    pub const fn noted(&self) -> &'static [&'static str] {
        match self {
            // Those of steerers are shown where an experiment is about them.
            Self::Page(_) => &[],
            Self::Download(_) => &["goodput_mbit", "capacity_percent"],
        }
    }

    /// What is run, one by one, by name.
    pub fn subjects(&self) -> Vec<String> {
        match self {
            Self::Page(workload) => workload.pages.0.iter().map(|page| page.id.clone()).collect(),
            Self::Download(_) => vec!["download".to_owned()],
        }
    }
}

/// Page loads.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageWorkload {
    /// The pages.
    pub pages: PageSet,
    /// How heavy they are.
    #[serde(default = "paper", deserialize_with = "sizes")]
    pub sizes: Sizes,
    /// The factor on recorded thinking times of the browser.
    #[serde(default = "think")]
    pub think: f64,
}

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

/// Pages: in a file so many of those compiled in, or a list of names of those and of files.
#[derive(Clone, Debug)]
pub struct PageSet(pub Vec<Arc<Page>>);

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
        let known = builtin::pages();
        let count = usize::try_from(number).ok().filter(|count| (1..=known.len()).contains(count));
        let count =
            count.ok_or_else(|| E::custom(format!("from 1 to {} pages are compiled in", known.len())))?;
        Ok(PageSet(known.into_iter().take(count).map(Arc::new).collect()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<PageSet, A::Error> {
        let mut pages = Vec::new();
        while let Some(name) = names.next_element::<String>()? {
            pages.push(Arc::new(page(&name).map_err(de::Error::custom)?));
        }
        if pages.is_empty() {
            return Err(de::Error::custom("at least one page is needed"));
        }
        Ok(PageSet(pages))
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
