//! The paths of a program as it tells them.

use crate::path_choice::PathChoice;
use crate::paths::state_name;
use hvq::path_manager::{LinkUse, PathManagerStatus, Rule, Use};
use hvq::{Connection, Hints, PathInfo, PathManager};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The status of a program.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProgramStatus {
    /// `proxy` or `tunnel`.
    pub program: String,
    /// The number of its process.
    pub process: u32,
    /// The host and port that it is connected to, or tries to be.
    pub peer: String,
    /// True while there is a connection.
    pub connected: bool,
    /// The open paths.
    pub paths: Vec<PathReport>,
    /// The links that no path uses, if paths follow the links.
    pub unused: Vec<UnusedLink>,
    /// The rules that are for no link.
    pub idle_rules: Vec<String>,
}

/// The status of a path.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PathReport {
    /// Its name, or its number.
    pub name: String,
    /// Its path ID.
    pub id: u32,
    /// `validating`, `validated` or `silent`.
    pub state: String,
    /// The local address.
    pub local: SocketAddr,
    /// The remote address.
    pub remote: SocketAddr,
    /// The rate of what is sent, hinted or estimated, in Mbit/s.
    pub rate_mbit: Option<f64>,
    /// The smoothed round-trip time in milliseconds.
    pub rtt_ms: f64,
    /// The estimated one-way delay to the peer in milliseconds.
    pub delay_ms: f64,
    /// The share of packets that were lost, from 0 to 1.
    pub lost: f64,
    /// Bytes of UDP payload sent.
    pub bytes_sent: u64,
    /// Bytes of UDP payload received.
    pub bytes_received: u64,
    /// The price of a byte, if it has one.
    pub price: Option<u64>,
    /// The rule by which it is used, unless that is the default.
    pub rule: Option<String>,
    /// The budget of the rule.
    pub budget: Option<BudgetReport>,
}

/// A budget and what was spent of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BudgetReport {
    /// The budget, such as `500MB/day`.
    pub budget: String,
    /// Bytes spent in this day or month.
    pub spent: u64,
}

/// A link that no path uses.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UnusedLink {
    /// The name of the interface.
    pub name: String,
    /// The reason.
    pub reason: String,
}

impl ProgramStatus {
    /// The status of this process, a `program` whose connection to `peer` was made over `choice` and is kept in step with the
    /// links by `manager`, if there are any.
    pub fn of(
        (program, peer): (&str, &str),
        choice: &PathChoice,
        connection: Option<&Connection>,
        manager: Option<&PathManager>,
    ) -> Self {
        let links = manager.map(PathManager::status).unwrap_or_default();
        let paths = connection.map(Connection::paths).unwrap_or_default();
        let report = |path| report(path, choice, &links, manager);
        Self {
            program: program.to_owned(),
            process: std::process::id(),
            peer: peer.to_owned(),
            connected: connection.is_some_and(|connection| connection.close_reason().is_none()),
            paths: paths.into_iter().map(report).collect(),
            unused: unused(&links),
            idle_rules: links.idle_rules.clone(),
        }
    }
}

fn report(
    path: PathInfo,
    choice: &PathChoice,
    links: &PathManagerStatus,
    manager: Option<&PathManager>,
) -> PathReport {
    let (stats, counters) = (&path.stats, &path.stats.counters);
    let is_its = |link: &&hvq::path_manager::LinkStatus| matches!(link.usage, LinkUse::Path { id, .. } if id == path.id);
    let text = links.links.iter().find(is_its).and_then(|link| link.rule.clone());
    let rule: Option<Rule> = text.as_ref().and_then(|text| text.parse().ok());
    let name = path.name.clone().unwrap_or_else(|| path.id.to_string());
    let named = match choice {
        PathChoice::Named(paths) => paths.iter().find(|named| named.name == name).map(|named| named.hints),
        PathChoice::Several | PathChoice::Links(_) => None,
    };
    let hints = rule.as_ref().map(Rule::hints).or(named).unwrap_or(Hints::NONE);
    let budget = match (rule.as_ref().map(Rule::usage), manager, &text) {
        (Some(Use::Metered(Some(budget))), Some(manager), Some(text)) => {
            Some(BudgetReport { budget: budget.to_string(), spent: manager.spent(text, budget) })
        }
        _ => None,
    };
    let lost = counters.packets_lost.saturating_sub(counters.spurious_losses);
    let known = lost + counters.packets_acknowledged;
    PathReport {
        name,
        id: path.id.0,
        state: state_name(path.state).to_owned(),
        local: stats.tuple.local,
        remote: stats.tuple.remote,
        rate_mbit: stats.rate.map(|rate| rate.bits_per_second() as f64 / 1e6),
        rtt_ms: stats.rtt.as_secs_f64() * 1e3,
        delay_ms: stats.delay.as_secs_f64() * 1e3,
        lost: lost as f64 / known.max(1) as f64,
        bytes_sent: counters.bytes_sent,
        bytes_received: counters.bytes_received,
        price: hints.price_per_byte,
        rule: text,
        budget,
    }
}

fn unused(links: &PathManagerStatus) -> Vec<UnusedLink> {
    let unused = links.links.iter().filter_map(|link| match &link.usage {
        LinkUse::Path { .. } => None,
        LinkUse::Unused(reason) => Some(UnusedLink { name: link.name.clone(), reason: reason.to_string() }),
    });
    unused.collect()
}
