//! Programs of every day: what rode which channel.

use super::Part;
use super::table::Table;
use crate::programs::ProgramOutcome;
use crate::programs::traffic::Traffic;

/// The part about `outcomes`, if there are any.
pub(super) fn part(outcomes: &[ProgramOutcome]) -> Option<Part> {
    let (first, _) = outcomes.split_first()?;
    let _any = first;
    let heads = [
        "program",
        "way",
        "time",
        "channel",
        "up: packets",
        "bytes",
        "down: packets",
        "bytes",
        "SYN, FIN, RST",
        "ACK alone",
        "TCP data",
        "UDP",
        "late p99",
    ];
    let mut table = Table::new("", &heads);
    for outcome in outcomes {
        match &outcome.failure {
            Some(failure) => table.rows.push(failed(outcome, failure, heads.len())),
            None => table.rows.extend(rows(outcome)),
        }
    }
    let notes = vec![
        "Times include the start of the program. SYN, ACK and data are of both directions; what a tunnel carries are \
         datagrams of QUIC. Late: how much later than the channels say the emulator wrote packets, in parentheses where \
         that is too late for the run to be trusted."
            .to_owned(),
    ];
    Some(Part {
        title: "Programs in hvq run: what rode which channel",
        tables: vec![table],
        drawings: String::new(),
        notes,
    })
}

fn failed(outcome: &ProgramOutcome, failure: &str, width: usize) -> Vec<String> {
    let mut cells = vec![outcome.program.to_owned(), outcome.way.to_owned(), failure.to_owned()];
    cells.resize(width, String::new());
    cells
}

fn rows(outcome: &ProgramOutcome) -> Vec<Vec<String>> {
    let mut channels: Vec<&str> = outcome.traffic.iter().map(|traffic| traffic.channel.as_str()).collect();
    channels.dedup();
    let rows = channels.iter().enumerate().map(|(index, channel)| {
        let first = |text: String| if index == 0 { text } else { String::new() };
        let of =
            |way| outcome.traffic.iter().filter(move |t: &&Traffic| t.channel == *channel && t.way == way);
        let sum = |way, of_one: fn(&Traffic) -> u64| of(way).map(of_one).sum::<u64>();
        let both = |of_one: fn(&Traffic) -> u64| (sum("up", of_one) + sum("down", of_one)).to_string();
        let time = outcome.seconds.map_or_else(String::new, |seconds| format!("{:.0} ms", seconds * 1e3));
        let time = if outcome.says.is_empty() { time } else { outcome.says.clone() };
        vec![
            first(outcome.program.to_owned()),
            first(outcome.way.to_owned()),
            first(time),
            (*channel).to_owned(),
            sum("up", |t| t.packets).to_string(),
            bytes(sum("up", |t| t.bytes)),
            sum("down", |t| t.packets).to_string(),
            bytes(sum("down", |t| t.bytes)),
            both(|t| t.handshakes),
            both(|t| t.acknowledgements),
            both(|t| t.data),
            both(|t| t.datagrams),
            first(lateness(outcome.late_ms, outcome.trusted)),
        ]
    });
    rows.collect()
}

/// A lateness, in parentheses if it is too much.
pub(super) fn lateness(milliseconds: f64, trusted: bool) -> String {
    if trusted { format!("{milliseconds:.1} ms") } else { format!("({milliseconds:.1} ms)") }
}

/// Bytes for people.
pub(super) fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.2} MB", count as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(channel: &str, way: &str, packets: u64) -> Traffic {
        Traffic {
            channel: channel.to_owned(),
            way: way.to_owned(),
            packets,
            bytes: 1500 * packets,
            handshakes: 1,
            acknowledgements: packets - 1,
            data: 0,
            datagrams: 0,
            dropped: 0,
        }
    }

    #[test]
    fn each_channel_has_a_row_and_failures_say_why() {
        let outcome = ProgramOutcome {
            program: "curl",
            way: "dchannel",
            seconds: Some(0.1234),
            says: String::new(),
            traffic: vec![traffic("embb", "up", 2), traffic("embb", "down", 3), traffic("urllc", "up", 4)],
            late_ms: 2.0,
            trusted: false,
            failure: None,
        };
        let missing = ProgramOutcome { failure: Some("skipped: x".to_owned()), ..outcome.clone() };
        let part = part(&[outcome, missing]).unwrap();
        let text = part.tables[0].markdown();
        assert!(
            text.contains(
                "| curl | dchannel | 123 ms | embb | 2 | 3.0 kB | 3 | 4.5 kB | 2 | 3 | 0 | 0 | (2.0 ms) |"
            ),
            "{text}"
        );
        assert!(text.contains("|  |  |  | urllc | 4 | 6.0 kB | 0 | 0 B | 1 | 3 |"), "{text}");
        assert!(text.contains("skipped: x"), "{text}");
        assert!(super::part(&[]).is_none());
    }
}
