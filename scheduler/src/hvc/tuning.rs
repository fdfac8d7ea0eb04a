//! The constants of the rule, each with its unit and its source. "Chosen" means by experiments on the training half of pages,
//! stretches and seeds (docs/lab.md), or from the arithmetic that stands beside it.

use std::time::Duration;

use super::cost::WEIGHT_UNIT;
use crate::Bandwidth;

// The price of a byte.

/// α in units of 1/[`WEIGHT_UNIT`]: 0.75 (DChannel, NSDI 2023, §3.4, Table 5). Acknowledgements have it at any price of data.
pub(super) const ALPHA: u64 = WEIGHT_UNIT * 3 / 4;
/// The greatest fixed α, in hundredths: beyond it nothing but the smallest frames is worth a scarce path. Chosen.
pub(super) const MOST_HUNDREDTHS: u16 = 10_000;
/// The least α of a price that follows demand, in units of 1/[`WEIGHT_UNIT`]: 0.25. Chosen.
pub(super) const LEAST_ALPHA: u64 = WEIGHT_UNIT / 4;
/// The α that it approaches: 3. Chosen.
pub(super) const MOST_ALPHA: u64 = WEIGHT_UNIT * 3;
/// The forgone time of the path at which α is halfway between the two, in nanoseconds: 20 ms. Chosen.
pub(super) const HALFWAY: u64 = 20_000_000;
/// The longest backlog of forgone items that is remembered, in nanoseconds: 1 s. Chosen.
pub(super) const LONGEST_FORGONE: u64 = 1_000_000_000;

// What scales price and reward.

/// The scale of the reward by urgency, in sixteenths: 2 at urgency 0, 1 at the default 3, 1/8 at 7 (urgencies are those of RFC
/// 9218 §4.1). Chosen.
pub(super) const URGENCY_SCALE: [u64; 8] = [32, 24, 20, 16, 12, 8, 4, 2];
/// From this urgency on data is background (RFC 9218 §4.1 names 7 so; 6 is what is left to grade it).
pub(super) const BACKGROUND: u8 = 6;
/// The factor on the reward of the only path that is in time for a deadline. Chosen.
pub(super) const PRESSING: u64 = 4;
/// The factor on the price where the peer's connections share the path, as many as a page has domains. Chosen.
pub(super) const SHARED_BY_PEER: u64 = 3;
/// The factor on the price where others share the path: their queue is seen only a round trip later. Chosen.
pub(super) const SHARED: u64 = 2;
/// The greatest ratio of hinted prices that counts: above it only what is late otherwise is worth the path. Chosen.
pub(super) const MOST_PRICE_RATIO: u64 = 64;
/// The difference of loss up to which paths are as reliable, in thousandths: a packet in a hundred. Chosen.
pub(super) const LOSS_SLACK: u16 = 10;

// Foreground and background.

/// The time for which background data stays off a scarce path after foreground data used it. Chosen.
pub(super) const FOREGROUND_HOLD: Duration = Duration::from_millis(100);
/// The time after its latest data for which the foreground may be waiting for answers: a person's patience (Nielsen, Usability
/// Engineering, 1993: 1 s).
pub(super) const FOREGROUND_PRESENT: Duration = Duration::from_secs(1);
/// Data of this urgency is worth a copy with `hvc-duplicate` (RFC 9218 §4.1: 0 is the most urgent).
pub(super) const CRITICAL: u8 = 0;

// The first path.

/// The delays of the bulk path within which a handshake on the scarce path has to bring its keys: five quarters. From one to one and
/// a half made little difference. Chosen.
pub(super) const FIRST_PATH_LEAD: (u64, u64) = (5, 4);

// Silent paths.

/// The round trips of the slowest path after which each has shown whether it answers: a probe timeout is about two with its
/// variation (RFC 9002 §6.2.1), and the answer to its probe one.
pub(super) const DOUBTED_ROUND_TRIPS: u32 = 3;
/// The least time for that: the peer may delay its acknowledgements by 25 ms (RFC 9000 §18.2), and did so before.
pub(super) const LEAST_DOUBT: Duration = Duration::from_millis(60);
/// The longest. Chosen.
pub(super) const LONGEST_DOUBT: Duration = Duration::from_millis(500);
/// The items that are copied in a doubt at most, each in a packet of 1.2 to 1.5 kB: what an initial window of RFC 9002 (§7.2)
/// is. Chosen.
pub(super) const DOUBTED_COPIES: u8 = 10;

// Deadlines.

/// The time for which the latest user of a scarce path is expected to use it again: messages of a rhythm, such as frames of
/// video, do (10 frames a second and more).
pub(super) const RHYTHM: Duration = Duration::from_millis(100);
/// The longest time for which a piece keeps the path busy: the more urgent data waits behind it. Chosen.
pub(super) const PIECE: Duration = Duration::from_millis(2);
/// A piece of fewer bytes is mostly header (some 60 bytes of IP, UDP and QUIC).
pub(super) const LEAST_PIECE: usize = 200;

// Streams and waiting.

/// A pause of a stream longer than this ends what it is taken to go on with. Chosen.
pub(super) const BURST_PAUSE: Duration = Duration::from_millis(100);
/// A wait is cut off here, in nanoseconds: 1 s. Estimates of when room returns are only estimates. Chosen.
pub(super) const LONGEST_WAIT: u64 = 1_000_000_000;
/// The round trips in which a window is taken to double while nothing else is known. With more, a path whose slow start ended
/// without a queue (HyStart++, RFC 9406) keeps slow ones unused. Chosen.
pub(super) const DOUBLINGS: u64 = 3;
/// The ratio of the smoothed round trip to the least from which on a queue shows: 3/2. Chosen.
pub(super) const CONGESTED: (u32, u32) = (3, 2);
/// A window of more than this many times what a round trip carries at the path's rate is not what limits the path: in slow start
/// it is twice that (RFC 9002 §7.3.1), and acknowledgements and estimates lag as much again.
pub(super) const WINDOW_LIMITED: u64 = 4;

// Acknowledgements.

/// One over the share of a path's rate that acknowledgements of other paths may take.
///
/// A quarter of 2 Mbit/s carries 700 bare ACK packets a second: 28 in a round trip of 40 ms, more than a congestion
/// controller needs, while requests and small objects keep three quarters.
pub(super) const ACK_SHARE: u64 = 4;
/// One over the share where the connections of this endpoint share the path: each has a budget of its own.
pub(super) const ACK_SHARE_OF_MANY: u64 = 8;
/// The depth of their token bucket in nanoseconds of the share: the path may run ahead of its budget by 8 bare packets at 2
/// Mbit/s, less than 3 ms of queue.
pub(super) const ACK_DEPTH: u64 = 10_000_000;
/// The rate that is assumed for their budget where none is known. Chosen.
pub(super) const ASSUMED_RATE: Bandwidth = Bandwidth::from_mbit(1);

// Spare capacity.

/// The time for which bulk stays off a scarce channel after a latency-critical frame used it: its sender may send again.
/// Chosen.
pub(super) const SPARE_HOLD: Duration = Duration::from_millis(100);
/// The time without anything latency-critical after which nothing is kept free for it. Chosen.
pub(super) const CALM: Duration = Duration::from_secs(1);
/// The longest time for which a piece of bulk keeps the channel busy: a latency-critical frame may have to wait behind it.
/// Chosen.
pub(super) const BURST: Duration = Duration::from_millis(2);
/// One over the share of the rate that is lent until then. The other half keeps frames and acknowledgements from meeting a
/// burst each time.
pub(super) const LENT_SHARE: u64 = 2;
/// The queue that bulk may make on a path whose rate nobody promised, if that is as scarce as can be: half a datagram at 2
/// Mbit/s.
pub(super) const LENT_QUEUE: Duration = Duration::from_millis(3);
/// A piece that carries fewer bytes than this is mostly header.
pub(super) const LEAST_LENT: usize = 200;

// Repetition of an answer, which saves processor time and no more.

/// Pieces of a stream that follow a placed one unasked.
pub(super) const REPEATS: usize = 3;
/// The transmission time below which pieces follow unasked: no estimate of delay is finer.
pub(super) const NEGLIGIBLE: Duration = Duration::from_millis(1);
/// More of them follow while all take less than this, for then a question costs about as much as what it is about.
pub(super) const INSTANT: Duration = Duration::from_micros(125);
/// The maximum number of repeats of one placement: the other paths are to have their turn in each pass.
pub(super) const MOST_REPEATS: usize = 15;
/// The factor by which a path's send allowance must exceed the item for repeats where the path's rate is not known.
pub(super) const WIDE: usize = 8;
/// The same for the most repeats.
pub(super) const OPEN: usize = 4 * WIDE;
/// Nearer to its end than this, in bytes, each piece of a message has a question of its own.
pub(super) const BULK: usize = 64 << 10;
