//! The method of the experiment.

use crate::experiment::controllers::ControllerOutcome;
use crate::report::svg::escape;

/// The points of the method as a list.
pub(super) fn list(outcomes: &[ControllerOutcome]) -> String {
    let Some(first) = outcomes.first() else { return String::new() };
    let points = [
        format!("hvq {}, seed {}, {} s of virtual time a run. The same seed gives the same numbers.", env!("CARGO_PKG_VERSION"), first.seed, first.seconds),
        format!("Base: eMBB <code>{}</code>, URLLC <code>{}</code>; drop-tail queues of 800 packets each way.", escape(&first.embb), escape(&first.urllc)),
        "One endless stream from the server to the client, real handshakes and packet protection, datagrams of 1452 bytes. The clock is virtual, the protocol is not.".to_owned(),
        "Steered below: the transport has one path. DChannel's Algorithm 1 (NSDI 2023, α = 0.75) chooses for every packet in both directions; it knows the typical delay of both channels and the rate of URLLC. Packets of URLLC pass its reordering buffer (100 ms). Nothing in the transport knows of it.".to_owned(),
        "hvq: two paths, scheduler hvc, a controller on each path. The handshake is on URLLC. Both ends are told the rate and the delay of URLLC, which its operator guarantees, and nothing of eMBB.".to_owned(),
        "Goodput is stream data that the client read over the whole run, handshake included. The queue is the time that a packet finds before it at the bottleneck of eMBB, downlink.".to_owned(),
        "The paper's values are those of the text of §3.1 (Pantheon, kernel TCP); how it counts throughput is not said.".to_owned(),
    ];
    format!("<ul>\n{}</ul>\n", points.map(|point| format!("<li>{point}</li>\n")).concat())
}
