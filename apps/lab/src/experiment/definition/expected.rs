//! Expectations of an experiment: published values, goals, and the drawing of results.

use super::axis::Axis;
use super::measure::Measure;
use crate::experiment::pages::Scheme;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use toml::Spanned;

/// Values of axes by their labels: the cells that have them.
pub type Selection = BTreeMap<Axis, Spanned<String>>;

/// Published values of one scheme.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Their source, if not that of the experiment.
    #[serde(default)]
    pub source: String,
    /// The scheme, as it is run here.
    pub scheme: Spanned<Scheme>,
    /// The measure that they are values of.
    #[serde(default)]
    pub measure: Measure,
    /// The cells that they are values of.
    #[serde(default)]
    pub at: Selection,
    /// The axis along which they are given.
    pub along: Axis,
    /// The value for each label.
    pub values: BTreeMap<Spanned<String>, f64>,
}

/// A wish, held against every cell.
#[derive(Clone, Debug)]
pub struct Goal {
    /// Its number in the list of the project.
    pub number: u32,
    /// The goal, in words.
    pub says: String,
    /// The number of cells in which it is to be met, if not all.
    pub cells: Option<usize>,
    /// The goal, in numbers.
    pub wanted: Wanted,
}

/// The goal, in numbers.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// A measure is not less than a bound.
    AtLeast(Operand, Bound),
    /// A measure is not more than a bound.
    AtMost(Operand, Bound),
    /// Schemes come in this order by a measure, the largest first, in these cells.
    Order(Measure, Vec<Spanned<Scheme>>, Selection),
    /// A measure is at most so far from what was published of it.
    NearPublished(Operand, f64),
}

/// A measure of a scheme.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operand {
    /// The measure.
    #[serde(default)]
    pub measure: Measure,
    /// The scheme that is measured.
    pub scheme: Spanned<Scheme>,
    /// In these cells only; of a bound: in the cell that differs in this.
    #[serde(default)]
    pub at: Selection,
    /// Multiplied by this.
    #[serde(default = "one")]
    pub times: f64,
    /// Then added to this.
    #[serde(default)]
    pub plus: f64,
}

const fn one() -> f64 {
    1.0
}

/// The bound with which a measure is compared.
#[derive(Clone, Debug)]
pub enum Bound {
    /// A number.
    Number(f64),
    /// Another measure.
    Of(Box<Operand>),
}

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either)
    }
}

/// Reads both forms.
struct Either;

impl<'de> Visitor<'de> for Either {
    type Value = Bound;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number, or a table with `scheme`")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Bound, E> {
        Ok(Bound::Number(number as f64))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Bound, E> {
        match number.is_finite() {
            true => Ok(Bound::Number(number)),
            false => Err(E::invalid_value(de::Unexpected::Float(number), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Bound, A::Error> {
        Operand::deserialize(MapAccessDeserializer::new(map)).map(|operand| Bound::Of(Box::new(operand)))
    }
}

/// The drawing of results.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Plot {
    /// The kind of drawing.
    pub kind: PlotKind,
    /// The measure upwards.
    pub measure: Measure,
    /// Measures that stand in tables beside it.
    pub also: Vec<Measure>,
    /// The axis to the right.
    pub along: Axis,
    /// The schemes that are drawn; none for all.
    pub schemes: Vec<Spanned<Scheme>>,
}

impl Default for Plot {
    fn default() -> Self {
        Self {
            kind: PlotKind::Bars,
            measure: Measure::Gain,
            also: Vec::new(),
            along: Axis::Embb,
            schemes: Vec::new(),
        }
    }
}

/// The kind of a drawing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlotKind {
    /// A group of bars for each value of the axis.
    Bars,
    /// A line for each scheme.
    Lines,
}
