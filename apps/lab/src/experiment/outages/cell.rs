//! A cell: a load over two channels with outages, and its runs.

use super::outage::{Outage, OutageKind};
use super::outcome::{OutageOutcome, OutageVerdict, Times};
use crate::experiment::pages::{Belief, Channels, Ending, Notes, Order, PageRun, Reach, Scheme, is_told};
use crate::pages::{Page, THINK_SCALE};
use crate::workload::page_load::{ApplicationHints, Background, Deployment, Manner};
use hvq_emulation::{ChannelSpec, TraceError};
use hvq_scheduler::Policy;
use hvq_transport::congestion::Algorithm;
use std::sync::Arc;
use std::time::Duration;

/// One channel alone that takes longer never ends.
const ALONE_LIMIT: Duration = Duration::from_secs(100);
/// Two channels that take longer never end: more than is allowed beside the slowest that ends alone.
const BOTH_LIMIT: Duration = Duration::from_secs(150);

/// A load over two channels with outages.
#[derive(Clone, Debug)]
pub struct OutageCell {
    /// Its number among those of a seed, or its name among the named ones.
    pub name: String,
    /// The family of its outages.
    pub kind: OutageKind,
    /// The page, or the exchange as a page.
    pub page: Arc<Page>,
    /// The place where connections end.
    pub deployment: Deployment,
    /// The channel with the high bandwidth, without its outages.
    pub embb: ChannelSpec,
    /// The channel with the low latency, without its outages.
    pub urllc: ChannelSpec,
    /// The outages of both.
    pub outages: Vec<Outage>,
    /// The seed of everything random in a run.
    pub seed: u64,
}

/// The times over each channel alone, with hints or without.
#[derive(Default)]
struct Alone {
    told: Option<Times>,
    untold: Option<Times>,
}

impl OutageCell {
    /// Runs the cell over each channel alone and over both with each of `policies`.
    ///
    /// # Errors
    ///
    /// A trace cannot be read.
    pub fn outcomes(&self, policies: &[Policy]) -> Result<Vec<OutageOutcome>, TraceError> {
        let calm = self.calm();
        let (mut alone, mut alone_calm) = (Alone::default(), Alone::default());
        let mut outcomes = Vec::new();
        for policy in policies {
            let single = self.alone(*policy, &mut alone)?;
            let both = self.run(*policy).ending(Reach::Both, BOTH_LIMIT)?;
            let mut outcome = OutageOutcome::new(self, *policy, single, both);
            // Without outages as well, a policy can be slower than one channel: that is its price, not that of outages.
            if outcome.verdict == OutageVerdict::Late {
                let undisturbed = calm.alone(*policy, &mut alone_calm)?;
                let own = time(calm.run(*policy).ending(Reach::Both, BOTH_LIMIT)?);
                let cost = single.better().zip(undisturbed.better());
                let cost = cost.map(|(better, undisturbed)| better.saturating_sub(undisturbed));
                outcome.excuse(own.zip(cost).map(|(own, cost)| own + cost));
            }
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    /// Returns the same cell without outages.
    fn calm(&self) -> Self {
        Self { outages: Vec::new(), ..self.clone() }
    }

    /// A line for people: the load, where connections end, the channels and their outages.
    pub fn describe(&self) -> String {
        let lead = self.deployment.lead();
        let outages: Vec<String> = self.outages.iter().map(|outage| outage.describe(lead)).collect();
        let Self { page, deployment, embb, urllc, .. } = self;
        format!("{} ({deployment}); eMBB {embb}; URLLC {urllc}; {}", page.id, outages.join(", "))
    }

    /// The times over each channel alone, told of them what `policy` is told: run once for all policies alike.
    fn alone(&self, policy: Policy, known: &mut Alone) -> Result<Times, TraceError> {
        let (known, as_policy) = match is_told(policy) {
            true => (&mut known.told, Policy::Single(None)),
            false => (&mut known.untold, Policy::MinRtt),
        };
        if let Some(times) = known {
            return Ok(*times);
        }
        let run = self.run(as_policy);
        let times = Times {
            embb: time(run.ending(Reach::Embb, ALONE_LIMIT)?),
            urllc: time(run.ending(Reach::Urllc, ALONE_LIMIT)?),
        };
        *known = Some(times);
        Ok(times)
    }

    fn run(&self, policy: Policy) -> PageRun {
        let (mut embb, mut urllc) = (self.embb.clone(), self.urllc.clone());
        self.outages.iter().for_each(|outage| outage.apply(&mut embb, &mut urllc));
        PageRun {
            page: self.page.clone(),
            manner: Manner {
                deployment: self.deployment,
                voice: ApplicationHints::Silent,
                think_scale: THINK_SCALE,
                wait_scale: 1.0,
                size_scale: 1.0,
                background: Background::NONE,
                connections: 1,
            },
            channels: Channels { name: self.name.clone(), embb, urllc },
            belief: Belief::default(),
            order: Order::default(),
            // The transport is what is tested: with all that it has, whatever the policy.
            scheme: Scheme::Bound(policy),
            congestion: Algorithm::Cubic,
            repetition: 0,
            notes: Notes::Few,
            seed: self.seed,
        }
    }
}

/// The time of a load that ended.
fn time(ending: Ending) -> Option<Duration> {
    match ending {
        Ending::Loaded(time) => Some(time),
        Ending::Failed(_) | Ending::Stuck(_) => None,
    }
}
