//! Tables of interfaces that go and come: the longest gap of a request stream by policy and event.

use super::table::Table;
use crate::chaos::{Event, TriedProgram, Try};

/// A table for each client, in Markdown: a row for each policy, a column for each event, gaps in seconds.
pub fn markdown(outcomes: &[Try]) -> String {
    let mut text = String::new();
    for client in TriedProgram::ALL {
        let own: Vec<&Try> = outcomes.iter().filter(|outcome| outcome.client == client).collect();
        if !own.is_empty() {
            text.push_str(&table(client, &own).markdown());
            text.push('\n');
        }
    }
    let problems = outcomes.iter().filter_map(|outcome| Some((outcome, outcome.problem.as_ref()?)));
    for (Try { client, policy, event, .. }, problem) in problems {
        text.push_str(&format!("Not measured: {}, {policy}, {event}: {problem}\n\n", title(*client)));
    }
    text
}

fn title(client: TriedProgram) -> &'static str {
    match client {
        TriedProgram::Proxy => "hvq proxy and hvq gateway, paths named",
        TriedProgram::LinksProxy => "hvq proxy and hvq gateway, paths that follow the links",
        TriedProgram::Example => "the C examples requests and echo",
    }
}

fn table(client: TriedProgram, outcomes: &[&Try]) -> Table {
    let mut events: Vec<Event> = outcomes.iter().map(|outcome| outcome.event).collect();
    events.sort_unstable();
    events.dedup();
    let heads: Vec<&str> =
        std::iter::once("policy").chain(events.iter().map(|event| event.title())).collect();
    let caption = format!("**{}** (longest time between two answers, in seconds)", title(client));
    let mut table = Table::new(caption, &heads);
    let mut policies: Vec<&str> = Vec::new();
    for outcome in outcomes {
        if !policies.contains(&outcome.policy.as_str()) {
            policies.push(&outcome.policy);
        }
    }
    for policy in policies {
        let cell = |event: &Event| {
            let found = outcomes.iter().find(|outcome| outcome.policy == policy && outcome.event == *event);
            found.map_or_else(String::new, |outcome| entry(outcome))
        };
        table.rows.push(std::iter::once(policy.to_owned()).chain(events.iter().map(cell)).collect());
    }
    table
}

fn entry(outcome: &Try) -> String {
    match (outcome.gap_ms, &outcome.problem) {
        (_, Some(_)) => "not measured".to_owned(),
        (Some(gap), None) => format!("{:.2}", gap / 1e3),
        (None, None) => "stands still".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_stand_by_policy_and_event_and_what_was_not_measured_is_said() {
        let outcome = |policy: &str, event, gap_ms, problem: Option<&str>| Try {
            client: TriedProgram::Proxy,
            policy: policy.to_owned(),
            event,
            gap_ms,
            answers: 10,
            failures: 0,
            problem: problem.map(str::to_owned),
        };
        let text = markdown(&[
            outcome("hvc", Event::Removed, Some(1_234.0), None),
            outcome("hvc", Event::DownUp, Some(120.0), None),
            outcome("min-rtt", Event::DownUp, None, None),
            outcome("min-rtt", Event::Removed, None, Some("no ip")),
        ]);
        for line in [
            "| policy | link down | interface removed |",
            "| hvc | 0.12 | 1.23 |",
            "| min-rtt | stands still | not measured |",
            "Not measured: hvq proxy and hvq gateway, paths named, min-rtt, removed: no ip",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}\n{text}");
        }
    }
}
