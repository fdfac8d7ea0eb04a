//! The variations, and the runs that follow from them.

use super::belief::Belief;
use super::order::Order;
use super::run::{Channels, Notes, PageRun};
use super::scheme::Scheme;
use super::stretch::{seed_of, stretch};
use crate::experiment::definition::Half;
use crate::pages::Page;
use crate::workload::page_load::Manner;
use hvq_emulation::{ChannelSpec, TraceName};
use hvq_transport::congestion::Algorithm;
use std::sync::Arc;

/// The sizes of the pages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sizes {
    /// The captured sizes.
    Captured,
    /// Scaled so that the corpus is as heavy as the paper's (NSDI 2023, §5.1): by the factor of each page.
    Paper,
}

/// The variations of the experiment.
#[derive(Clone, Debug)]
pub struct PagesPlan {
    /// The pages.
    pub pages: Vec<Arc<Page>>,
    /// The sizes of the pages.
    pub sizes: Sizes,
    /// The manner in which they are loaded; the size scale is set by `sizes`.
    pub manner: Manner,
    /// eMBB by these traces.
    pub traces: Vec<TraceName>,
    /// The schemes by which both channels are used.
    pub schemes: Vec<Scheme>,
    /// The controller of every path.
    pub congestion: Algorithm,
    /// Loads of each page with each scheme, each on another stretch of the trace.
    pub repetitions: u32,
    /// The half of the traces' stretches and of the seeds.
    pub half: Half,
    /// The seed of everything random.
    pub seed: u64,
}

impl PagesPlan {
    /// All runs: by trace, then by page, then by stretch, then by scheme, so that what is compared runs together.
    pub fn runs(&self) -> Vec<PageRun> {
        let mut runs = Vec::new();
        for trace in &self.traces {
            for page in &self.pages {
                for repetition in 0..self.repetitions {
                    runs.extend(
                        self.schemes.iter().map(|scheme| self.run(*trace, page, repetition, *scheme)),
                    );
                }
            }
        }
        runs
    }

    fn run(&self, trace: TraceName, page: &Arc<Page>, repetition: u32, scheme: Scheme) -> PageRun {
        let embb = stretch(
            &ChannelSpec::trace(trace),
            seed_of(self.half.seed(self.seed), &page.id, repetition),
            self.half,
        );
        let embb = embb.expect("the traces are compiled in");
        let size_scale = match self.sizes {
            Sizes::Captured => 1.0,
            Sizes::Paper => page.paper_size_scale.unwrap_or(1.0),
        };
        PageRun {
            page: page.clone(),
            manner: Manner { size_scale, ..self.manner },
            channels: Channels { name: trace.label().to_owned(), embb, urllc: ChannelSpec::urllc() },
            belief: Belief::default(),
            order: Order::default(),
            scheme,
            congestion: self.congestion,
            repetition,
            notes: Notes::Few,
            seed: self.half.seed(self.seed).wrapping_add(repetition.into()),
        }
    }
}
