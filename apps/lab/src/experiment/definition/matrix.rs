//! The variations, and the cells that follow from them.

use super::axis::Axis;
use super::labelled::{AxisValue, Bytes, Labelled};
use crate::experiment::links::Links;
use crate::experiment::pages::{Belief, Order};
use crate::workload::page_load::{ApplicationHints, Background, Deployment, Interaction};
use hvq_emulation::{ChannelSpec, Probability};
use hvq_transport::congestion::Algorithm;
use serde::Deserialize;

/// Every combination of these is a cell.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Matrix {
    /// The places where connections end.
    pub deployment: Vec<Labelled<Deployment>>,
    /// The channel with the high bandwidth.
    pub embb: Vec<Labelled<ChannelSpec>>,
    /// The channel with the low latency.
    pub urllc: Vec<Labelled<ChannelSpec>>,
    /// The links of the device, in the place of eMBB and URLLC.
    pub links: Vec<Labelled<Links>>,
    /// The order in which connections are told of the channels.
    pub order: Vec<Labelled<Order>>,
    /// Random loss in both directions of both channels.
    pub loss: Vec<Labelled<Probability>>,
    /// The congestion controller of every path.
    pub controller: Vec<Labelled<Algorithm>>,
    /// The information that applications give the transport.
    pub voice: Vec<Labelled<ApplicationHints>>,
    /// The knowledge of the channels, right or wrong.
    pub belief: Vec<Labelled<Belief>>,
    /// The size of downloads.
    pub size: Vec<Labelled<Bytes>>,
    /// The traffic beside the load.
    pub background: Vec<Labelled<Background>>,
    /// The uses of an app.
    pub interaction: Vec<Labelled<Interaction>>,
}

impl Default for Matrix {
    /// NSDI 2023, Table 2: eMBB of 40 ms and 200 Mbit/s, URLLC of 5 ms and 2 Mbit/s, CUBIC, through a gateway.
    fn default() -> Self {
        fn one<T: AxisValue>(text: &str) -> Vec<Labelled<T>> {
            Labelled::of(text).into_iter().collect()
        }
        Self {
            deployment: one("gateway"),
            embb: one("embb"),
            urllc: one("urllc"),
            links: one("channels"),
            order: one("given"),
            loss: one("0"),
            controller: one("cubic"),
            voice: one("silent"),
            belief: one("true"),
            size: one("1MB"),
            background: one("0"),
            interaction: one("load"),
        }
    }
}

/// One combination: for each axis, which of its values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Cell([usize; Axis::ALL.len()]);

impl Cell {
    /// Returns the index of the value of `axis`.
    pub const fn at(self, axis: Axis) -> usize {
        self.0[axis as usize]
    }

    /// The cell with another value of `axis`.
    #[must_use]
    pub const fn with(mut self, axis: Axis, index: usize) -> Self {
        self.0[axis as usize] = index;
        self
    }
}

impl Matrix {
    /// The labels of the values of `axis`.
    pub fn labels(&self, axis: Axis) -> Vec<&str> {
        fn of<T>(values: &[Labelled<T>]) -> Vec<&str> {
            values.iter().map(|value| value.label.as_str()).collect()
        }
        match axis {
            Axis::Deployment => of(&self.deployment),
            Axis::Embb => of(&self.embb),
            Axis::Urllc => of(&self.urllc),
            Axis::Links => of(&self.links),
            Axis::Order => of(&self.order),
            Axis::Loss => of(&self.loss),
            Axis::Controller => of(&self.controller),
            Axis::Voice => of(&self.voice),
            Axis::Belief => of(&self.belief),
            Axis::Size => of(&self.size),
            Axis::Background => of(&self.background),
            Axis::Interaction => of(&self.interaction),
        }
    }

    /// The axes with more than one value.
    pub fn varied(&self) -> Vec<Axis> {
        Axis::ALL.into_iter().filter(|axis| self.labels(*axis).len() > 1).collect()
    }

    /// Every combination, the last axis varied fastest.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = vec![Cell::default()];
        for axis in Axis::ALL {
            let values = 0..self.labels(axis).len();
            cells = cells
                .into_iter()
                .flat_map(|cell| values.clone().map(move |value| cell.with(axis, value)))
                .collect();
        }
        cells
    }

    /// The label of the value that `cell` has on `axis`.
    pub fn label(&self, cell: Cell, axis: Axis) -> &str {
        self.labels(axis).get(cell.at(axis)).copied().unwrap_or_default()
    }

    /// `cell` in words: its values on the axes that are varied, but for `without`.
    pub fn describe(&self, cell: Cell, without: &[Axis]) -> String {
        let axes = self.varied().into_iter().filter(|axis| !without.contains(axis));
        axes.map(|axis| self.label(cell, axis)).collect::<Vec<_>>().join(", ")
    }
}
