//! The status of a program as a table for people.

use super::status::{PathReport, ProgramStatus};
use crate::output::bytes;

/// The heads of the columns.
const HEADS: [&str; 9] = ["PATH", "STATE", "RATE", "RTT", "LOST", "SENT", "RECEIVED", "PRICE", "FROM"];

/// The status in lines: the program, a line for each path, and the links that are not used with the reasons.
pub fn text(status: &ProgramStatus) -> String {
    let ProgramStatus { program, process, peer, connected, .. } = status;
    let state = if *connected { "connected to" } else { "not connected to" };
    let mut lines = vec![format!("hvq {program} (process {process}) is {state} {peer}")];
    if !status.paths.is_empty() {
        let mut rows = vec![HEADS.map(str::to_owned)];
        rows.extend(status.paths.iter().map(row));
        lines.extend(aligned(&rows));
    }
    for path in &status.paths {
        if let Some(budget) = &path.budget {
            lines.push(format!("  {}: {} were spent of {}", path.name, bytes(budget.spent), budget.budget));
        }
    }
    lines.extend(status.unused.iter().map(|link| format!("  {} is not used: {}", link.name, link.reason)));
    lines.extend(
        status.idle_rules.iter().map(|rule| format!("  no network interface matches the rule {rule}")),
    );
    lines.join("\n")
}

fn row(path: &PathReport) -> [String; 9] {
    let none = || "-".to_owned();
    [
        path.name.clone(),
        path.state.clone(),
        path.rate_mbit.map_or_else(none, |rate| format!("{rate:.1} Mbit/s")),
        format!("{:.1} ms", path.rtt_ms),
        format!("{:.1} %", path.lost * 100.0),
        bytes(path.bytes_sent),
        bytes(path.bytes_received),
        path.price.map_or_else(none, |price| price.to_string()),
        path.local.to_string(),
    ]
}

/// The rows with columns as wide as their widest cell.
fn aligned(rows: &[[String; 9]]) -> Vec<String> {
    let widths: [usize; 9] =
        std::array::from_fn(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0));
    let line = |row: &[String; 9]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("  {}", cells.collect::<Vec<_>>().join("  ")).trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::status::{BudgetReport, UnusedLink};
    use super::*;

    #[test]
    fn paths_stand_in_columns_and_links_that_are_not_used_with_their_reasons() {
        let path = |name: &str, price| PathReport {
            name: name.to_owned(),
            id: 0,
            state: "validated".to_owned(),
            local: "10.1.0.2:4000".parse().unwrap(),
            remote: "10.9.0.1:443".parse().unwrap(),
            rate_mbit: Some(12.34),
            rtt_ms: 20.06,
            delay_ms: 10.0,
            lost: 0.015,
            bytes_sent: 1_500,
            bytes_received: 2_000_000,
            price,
            rule: None,
            budget: price.map(|_| BudgetReport { budget: "500MB/day".to_owned(), spent: 12_000_000 }),
        };
        let status = ProgramStatus {
            program: "proxy".to_owned(),
            process: 42,
            peer: "gateway.example:443".to_owned(),
            connected: true,
            paths: vec![path("wlan0", None), path("wwan0", Some(3))],
            unused: vec![UnusedLink {
                name: "eth0".to_owned(),
                reason: "the link is not connected".to_owned(),
            }],
            idle_rules: vec!["wlam0=use".to_owned()],
        };
        let wanted = "hvq proxy (process 42) is connected to gateway.example:443\n\
            \x20 PATH   STATE      RATE         RTT      LOST   SENT    RECEIVED  PRICE  FROM\n\
            \x20 wlan0  validated  12.3 Mbit/s  20.1 ms  1.5 %  1.5 kB  2.00 MB   -      10.1.0.2:4000\n\
            \x20 wwan0  validated  12.3 Mbit/s  20.1 ms  1.5 %  1.5 kB  2.00 MB   3      10.1.0.2:4000\n\
            \x20 wwan0: 12.00 MB were spent of 500MB/day\n\
            \x20 eth0 is not used: the link is not connected\n\
            \x20 no network interface matches the rule wlam0=use";
        assert_eq!(text(&status), wanted);
    }
}
