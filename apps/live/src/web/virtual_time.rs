//! Page loads of the browser, repeated in virtual time.

use super::arm::{Arm, Model};
use super::{WebPlan, stretch};
use crate::error::LiveError;
use hvq_emulation::ChannelSpec;
use hvq_lab::experiment::pages::{Belief, Channels, Notes, Order, PageRun};
use hvq_lab::pages::{Page, THINK_SCALE};
use hvq_lab::workload::page_load::{ApplicationHints, Background, Manner};
use serde::Serialize;
use std::sync::Arc;

/// The expected time of a load, computed in virtual time.
#[derive(Clone, Debug, Serialize)]
pub struct Expected {
    /// The page.
    pub page: String,
    /// eMBB.
    pub channel: String,
    /// The way.
    pub arm: Arm,
    /// Counted from 0.
    pub repetition: u32,
    /// The page load time in milliseconds.
    pub plt_ms: Option<f64>,
}

/// Computes in virtual time the loads of `plan`, but for arms that it does not know. Sizes are as captured, as in the
/// browser, and servers take no time to think.
///
/// # Errors
/// A channel cannot be read.
pub fn expected(plan: &WebPlan) -> Result<Vec<Expected>, LiveError> {
    let mut all = Vec::new();
    for (channel, page, repetition) in cells(plan) {
        for arm in &plan.arms {
            let Some(model) = arm.model() else { continue };
            let run = run(page, (channel, repetition), model)?;
            let outcome = run.outcome().map_err(|error| wrong(&error.to_string()))?;
            all.push(Expected {
                page: page.id.clone(),
                channel: channel.clone(),
                arm: *arm,
                repetition,
                plt_ms: outcome.plt_ms,
            });
        }
    }
    Ok(all)
}

fn cells(plan: &WebPlan) -> impl Iterator<Item = (&String, &Arc<Page>, u32)> {
    let pairs = plan.channels.iter().flat_map(|channel| plan.pages.iter().map(move |page| (channel, page)));
    pairs.flat_map(|(channel, page)| (0..plan.repetitions).map(move |repetition| (channel, page, repetition)))
}

fn wrong(says: &str) -> LiveError {
    LiveError::Program { program: "hvq lab", says: says.to_owned() }
}

fn run(page: &Arc<Page>, (channel, repetition): (&str, u32), model: Model) -> Result<PageRun, LiveError> {
    let embb: ChannelSpec = stretch(channel, repetition).parse().map_err(|_| wrong(channel))?;
    let Model { deployment, scheme, congestion } = model;
    Ok(PageRun {
        page: page.clone(),
        manner: Manner {
            deployment,
            voice: ApplicationHints::Priorities,
            think_scale: THINK_SCALE,
            wait_scale: 0.0,
            size_scale: 1.0,
            background: Background::NONE,
            connections: 1,
        },
        channels: Channels { name: channel.to_owned(), embb, urllc: ChannelSpec::urllc() },
        belief: Belief::default(),
        order: Order::default(),
        scheme: scheme.parse().map_err(|error: String| wrong(&error))?,
        congestion: congestion.parse().map_err(|_| wrong(congestion))?,
        repetition,
        notes: Notes::Few,
        seed: u64::from(repetition) + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq_lab::pages::builtin;

    #[test]
    fn every_arm_but_mptcp_has_its_figure_and_both_channels_help() {
        let plan = WebPlan {
            pages: vec![Arc::new(builtin::page("p34").unwrap())],
            channels: vec!["rtt=80ms,rate=60mbit".to_owned()],
            arms: Arm::ALL.to_vec(),
            repetitions: 1,
        };
        let all = expected(&plan).unwrap();
        let of = |arm| all.iter().find(|one: &&Expected| one.arm == arm).and_then(|one| one.plt_ms);
        assert_eq!((all.len(), of(Arm::Mptcp)), (7, None));
        assert!(of(Arm::GatewayHvc).unwrap() < of(Arm::GatewayEmbb).unwrap(), "{all:?}");
        assert!(of(Arm::Dchannel).unwrap() < of(Arm::Embb).unwrap(), "{all:?}");
    }
}
