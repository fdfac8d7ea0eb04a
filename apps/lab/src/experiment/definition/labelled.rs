//! Values with the label that tables and drawings give them.

use crate::experiment::links::Links;
use crate::experiment::pages::{Belief, Order};
use crate::workload::page_load::{ApplicationHints, Background, Deployment, Interaction};
use hvq_emulation::{ChannelSpec, Direction, Probability};
use hvq_transport::congestion::Algorithm;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// A value that can stand in a list of variations.
pub trait AxisValue: Clone {
    /// Reads its text form; says what is wrong with it.
    fn read(text: &str) -> Result<Self, String>;
}

impl AxisValue for ChannelSpec {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: hvq_emulation::SpecError| error.to_string())
    }
}

impl AxisValue for Probability {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: hvq_emulation::QuantityError| error.to_string())
    }
}

impl AxisValue for Algorithm {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: hvq_transport::congestion::UnknownAlgorithm| error.to_string())
    }
}

impl AxisValue for Deployment {
    fn read(text: &str) -> Result<Self, String> {
        text.parse()
    }
}

impl AxisValue for ApplicationHints {
    fn read(text: &str) -> Result<Self, String> {
        match text {
            "silent" => Ok(Self::Silent),
            "priorities" => Ok(Self::Priorities),
            _ => Err(format!("{text:?} is nothing that applications tell: choose silent or priorities")),
        }
    }
}

impl AxisValue for Belief {
    fn read(text: &str) -> Result<Self, String> {
        text.parse()
    }
}

impl AxisValue for Links {
    fn read(text: &str) -> Result<Self, String> {
        text.parse()
    }
}

impl AxisValue for Order {
    fn read(text: &str) -> Result<Self, String> {
        text.parse()
    }
}

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bytes(pub u64);

impl AxisValue for Bytes {
    fn read(text: &str) -> Result<Self, String> {
        let (digits, unit) = match (text.strip_suffix("KB"), text.strip_suffix("MB"), text.strip_suffix('B'))
        {
            (Some(digits), ..) => (digits, 1000),
            (_, Some(digits), _) => (digits, 1_000_000),
            (.., Some(digits)) => (digits, 1),
            _ => (text, 1),
        };
        let number = digits.trim().parse::<u64>().ok().filter(|number| (1..=1_000_000).contains(number));
        let bytes = number.map(|number| number * unit).filter(|bytes| *bytes <= MOST_BYTES);
        bytes
            .map(Self)
            .ok_or_else(|| format!("{text:?} is no size such as 500, 10KB or 100MB, at most 1000MB"))
    }
}

impl AxisValue for Interaction {
    fn read(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is nothing to do with an app: choose launch, search, load, or exchanges such as 20x1KB, at most \
                 {MOST_EXCHANGES}"
            )
        };
        match text {
            "launch" => Ok(Self::Launch),
            "search" => Ok(Self::Search),
            "load" => Ok(Self::Load),
            _ => {
                let (number, answer) = text.split_once('x').ok_or_else(wrong)?;
                let number = number.parse().ok().filter(|number| (1..=MOST_EXCHANGES).contains(number));
                let answer = Bytes::read(answer).map_err(|_| wrong())?.0;
                Ok(Self::Exchanges { number: number.ok_or_else(wrong)?, answer })
            }
        }
    }
}

/// More exchanges would not be made in the time that a run has.
const MOST_EXCHANGES: u32 = 1000;

/// Reads a number of flows (HotNets 2023, Table 1: two), `download` or `upload` for content without end, or `urllc:50%` for
/// packets of others that take half of URLLC.
impl AxisValue for Background {
    fn read(text: &str) -> Result<Self, String> {
        match text {
            "download" => Ok(Self::Bulk(Direction::Down)),
            "upload" => Ok(Self::Bulk(Direction::Up)),
            _ if text.starts_with("urllc:") => {
                let percent = text.strip_prefix("urllc:").and_then(|share| share.strip_suffix('%'));
                let percent = percent.and_then(|percent| percent.parse().ok());
                let percent = percent.filter(|percent| (1..=95).contains(percent));
                let wrong = || format!("{text:?} is no share of URLLC from urllc:1% to urllc:95%");
                percent.map(|percent| Self::OnUrllc { percent }).ok_or_else(wrong)
            }
            _ => {
                let number = text.parse::<u32>().ok().filter(|number| *number <= MOST_FLOWS);
                number.map(Self::Flows).ok_or_else(|| {
                    format!("{text:?} is no number of flows from 0 to {MOST_FLOWS}, nor download, upload or urllc:50%")
                })
            }
        }
    }
}

/// More flows are no background.
const MOST_FLOWS: u32 = 100;

/// More would not be sent in the time that a run has.
const MOST_BYTES: u64 = 1_000_000_000;

/// A value and its label: in a file `"text"`, which is both, or `{ label = "text", is = "text" }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Labelled<T> {
    /// The label in tables and drawings.
    pub label: String,
    /// The value.
    pub is: T,
}

impl<T: AxisValue> Labelled<T> {
    /// The value of `text`, which is its label.
    pub fn of(text: &str) -> Result<Self, String> {
        Ok(Self { label: text.to_owned(), is: T::read(text)? })
    }
}

impl<'de, T: AxisValue> de::Deserialize<'de> for Labelled<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// Reads both forms.
struct Either<T>(PhantomData<T>);

impl<'de, T: AxisValue> Visitor<'de> for Either<T> {
    type Value = Labelled<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text, or a table with `label` and `is`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Labelled::of(text).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut label, mut is) = (None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "label" => label = Some(map.next_value::<String>()?),
                "is" => is = Some(T::read(&map.next_value::<String>()?).map_err(de::Error::custom)?),
                other => return Err(de::Error::unknown_field(other, &["label", "is"])),
            }
        }
        let label = label.ok_or_else(|| de::Error::missing_field("label"))?;
        Ok(Labelled { label, is: is.ok_or_else(|| de::Error::missing_field("is"))? })
    }
}
