//! The figures of the comparison, each of one measure, contender and round.

use crate::PIPE_DATAGRAM;
use crate::contender::Contender;
use crate::instructions::{Count, Workload};
use crate::pipe::Cost;
use serde::{Serialize, Serializer};
use std::fmt;

/// The measures: the rows of the table, in its order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Measure {
    /// Throughput over loopback with datagrams of this size, in Mbit/s.
    BulkRate(u16),
    /// CPU seconds of the sender for a GiB.
    BulkSender(u16),
    /// CPU seconds of the receiver for a GiB.
    BulkReceiver(u16),
    /// Throughput of an upload over loopback, in Mbit/s.
    UploadRate,
    /// CPU seconds of its sender, the client, for a GiB.
    UploadSender,
    /// Throughput of so many connections together, in Mbit/s.
    ManyRate(u32),
    /// CPU seconds of their sender for a GiB.
    ManySender(u32),
    /// CPU seconds of their receiver for a GiB.
    ManyReceiver(u32),
    /// Packets of a hundred datagrams that their sender declared lost.
    ManyLost(u32),
    /// Goodput through emulated channels, as a share of the sum of their rates.
    Channels,
    /// Goodput through two emulated channels of unequal rates, as a share of their sum.
    UnequalChannels,
    /// CPU seconds of both ends in the pipe for a GiB.
    PipeTransfer,
    /// Instructions of both ends for a datagram of data, without packet protection and copies.
    DatagramInstructions,
    /// CPU microseconds of both ends in the pipe for a full handshake with X25519.
    PipeHandshake,
    /// Handshakes with X25519MLKEM768.
    PipePostQuantum,
    /// Thousands of instructions of both ends for a full handshake.
    HandshakeInstructions,
    /// Full handshakes a second over loopback.
    Handshakes,
    /// Small requests for a CPU second of both ends in the pipe.
    PipeRequests,
    /// Instructions of both ends for a small request and its answer.
    RequestInstructions,
    /// Instructions of both ends for a small request that is alone, and its answer.
    LoneRequestInstructions,
    /// Small requests a second over loopback, so many at a time.
    Requests(u32),
    /// Their 99th percentile, in milliseconds.
    RequestP99(u32),
    /// KiB of the server for an idle connection.
    Memory,
    /// KiB of the client for an idle connection.
    ClientMemory,
}

impl Measure {
    /// Digits behind the point.
    pub fn digits(self) -> usize {
        match self {
            Self::BulkSender(_)
            | Self::BulkReceiver(_)
            | Self::UploadSender
            | Self::ManySender(_)
            | Self::ManyReceiver(_)
            | Self::PipeTransfer => 2,
            Self::RequestP99(_) => 3,
            Self::Channels | Self::UnequalChannels => 3,
            Self::Memory | Self::ClientMemory | Self::ManyLost(_) => 1,
            _ => 0,
        }
    }
}

/// The name of the measure in the table.
impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BulkRate(datagram) => write!(f, "one stream, {datagram}-byte datagrams: Mbit/s"),
            Self::BulkSender(datagram) => write!(f, "sender, {datagram}: CPU s/GiB"),
            Self::BulkReceiver(datagram) => write!(f, "receiver, {datagram}: CPU s/GiB"),
            Self::UploadRate => write!(f, "upload, {PIPE_DATAGRAM}-byte datagrams: Mbit/s"),
            Self::UploadSender => write!(f, "upload, sender: CPU s/GiB"),
            Self::ManyRate(connections) => write!(f, "{connections} connections: Mbit/s"),
            Self::ManySender(connections) => write!(f, "{connections} connections, sender: CPU s/GiB"),
            Self::ManyReceiver(connections) => write!(f, "{connections} connections, receiver: CPU s/GiB"),
            Self::ManyLost(connections) => write!(f, "{connections} connections: % of datagrams lost"),
            Self::Channels => write!(f, "goodput ÷ rate of equal emulated channels"),
            Self::UnequalChannels => write!(f, "goodput ÷ rate of 200 and 50 Mbit/s together"),
            Self::PipeTransfer => write!(f, "pipe: CPU s/GiB"),
            Self::DatagramInstructions => write!(f, "pipe: instructions a datagram"),
            Self::PipeHandshake => write!(f, "pipe: CPU µs a handshake"),
            Self::PipePostQuantum => write!(f, "pipe: CPU µs a handshake, X25519MLKEM768"),
            Self::HandshakeInstructions => write!(f, "pipe: thousands of instructions a handshake"),
            Self::Handshakes => write!(f, "handshakes/s"),
            Self::PipeRequests => write!(f, "pipe: requests a CPU second"),
            Self::RequestInstructions => write!(f, "pipe: instructions a request"),
            Self::LoneRequestInstructions => write!(f, "pipe: instructions a request, 1 in flight"),
            Self::Requests(at_once) => write!(f, "requests/s, {at_once} in flight"),
            Self::RequestP99(at_once) => write!(f, "99th percentile, {at_once} in flight: ms"),
            Self::Memory => write!(f, "server's memory an idle connection: KiB"),
            Self::ClientMemory => write!(f, "client's memory an idle connection: KiB"),
        }
    }
}

impl Serialize for Measure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One figure.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Figure {
    /// The measure.
    pub measure: Measure,
    /// The contender.
    pub contender: Contender,
    /// The round, from 0.
    pub round: usize,
    /// The value, in the unit of the measure.
    pub value: f64,
}

/// Returns the figures of round `round` in the pipe.
pub fn of_pipe(cost: &Cost, round: usize) -> Vec<Figure> {
    let figures = [
        (Measure::PipeTransfer, cost.transfer),
        (Measure::PipeHandshake, cost.handshake.map(|seconds| seconds * 1e6)),
        (Measure::PipePostQuantum, cost.handshake_post_quantum.map(|seconds| seconds * 1e6)),
        (Measure::PipeRequests, cost.requests),
    ];
    let figure = |(measure, value): (_, Option<f64>)| {
        Some(Figure { measure, contender: cost.contender, round, value: value? })
    };
    figures.into_iter().filter_map(figure).collect()
}

/// Returns the figure of callgrind's count.
pub fn of_count(count: &Count) -> Figure {
    let (measure, value) = match count.workload {
        Workload::Transfer => (Measure::DatagramInstructions, count.protocol),
        Workload::Requests => (Measure::RequestInstructions, count.protocol),
        Workload::LoneRequests => (Measure::LoneRequestInstructions, count.protocol),
        Workload::Handshakes => (Measure::HandshakeInstructions, count.all / 1000.0),
    };
    Figure { measure, contender: count.contender, round: 0, value }
}
