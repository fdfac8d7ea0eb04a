//! Hints about the channel of a path, of both ends (docs/spec/path-hints.md): what the application of this end says, what
//! the peer told, and what of it the peer was told.

use crate::PathId;
use crate::Role;
use crate::recovery_token::TransmissionState;
use crate::wire::frame::PathHints;
use hvq_scheduler::{Bandwidth, Hints, Metering, Sharing};
use std::collections::BTreeMap;
use std::time::Duration;

/// The lowest rate that a peer is believed to promise. At less a queue of a few packets would stay for minutes in the
/// account of the endpoint.
const LEAST_RATE: Bandwidth = Bandwidth::from_bits_per_second(8_000);
/// The longest one-way delay that a peer is believed.
const LONGEST_DELAY: Duration = Duration::from_secs(10);
/// Paths that are not open whose hints are kept at most. They are advice: those beyond this are ignored.
const MAX_EARLY: usize = 64;

/// The newest hints of the peer about a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    sequence: u64,
    hints: Hints,
}

impl Told {
    /// Takes the content of a PATH_HINTS frame, as this end sees the channel.
    pub(crate) fn of(frame: &PathHints) -> Self {
        Self { sequence: frame.sequence, hints: frame.hints.mirrored() }
    }

    /// Returns true if `self` is newer than `known`.
    fn is_news_to(&self, known: Option<&Self>) -> bool {
        known.is_none_or(|known| self.sequence > known.sequence)
    }
}

/// The hints about the channel of one path.
#[derive(Debug, Default)]
pub(crate) struct ChannelHints {
    /// Those of this end's application.
    own: Hints,
    /// Tells whether what arrives bears out what the application says.
    receipt: Receipt,
    /// Those of the peer, and what is believed of them. Most peers say nothing.
    told: Option<Box<(Told, Hints)>>,
    /// Those that the peer was told.
    said: Said,
}

/// A promise held against the packets that the channel brings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Receipt {
    /// The endpoint was not asked yet.
    #[default]
    Unasked,
    /// Nothing refutes it.
    Holds,
    /// They come at this rate, in kbit/s: every path has room for one.
    Refuted { kilobits: u32 },
}

/// The hints that the peer was told about a path.
#[derive(Debug)]
struct Said {
    hints: Hints,
    /// The sequence number of the newest frame; `None` before the first.
    sequence: Option<u64>,
    progress: TransmissionState,
    /// True if the application of this end says something else now.
    is_outdated: bool,
}

impl Default for Said {
    fn default() -> Self {
        let progress = TransmissionState::Acknowledged;
        Self { hints: Hints::NONE, sequence: None, progress, is_outdated: false }
    }
}

impl ChannelHints {
    /// Returns all that is known: the application's word, and where it says nothing, the peer's. Of two rates that are promised
    /// the lower counts: the peer sees what arrives.
    pub(crate) fn known(&self) -> Hints {
        let (own, believed) = (self.own(), self.believed());
        let rate = own.rate.into_iter().chain(believed.rate).min();
        Hints { rate, ..own.or(believed) }
    }

    /// Returns the application's word, whether it holds or not.
    pub(crate) fn promised(&self) -> Hints {
        self.own
    }

    /// Returns the application's word, as far as what arrives does not refute it.
    pub(crate) fn own(&self) -> Hints {
        match self.receipt {
            Receipt::Unasked | Receipt::Holds => self.own,
            Receipt::Refuted { kilobits } => {
                lowered(self.own, Some(Bandwidth::from_bits_per_second(u64::from(kilobits) * 1_000)))
            }
        }
    }

    /// Returns the peer's hints as it told them, whether believed or not; `None` if it told nothing.
    pub(crate) fn told(&self) -> Option<Hints> {
        self.told.as_ref().map(|told| told.0.hints)
    }

    fn believed(&self) -> Hints {
        self.told.as_ref().map_or(Hints::NONE, |told| told.1)
    }

    /// Takes what the application of this end says.
    pub(crate) fn set_own(&mut self, own: Hints) {
        self.own = own;
        self.doubt();
    }

    /// The application's word is to be held against what arrives anew.
    pub(crate) fn doubt(&mut self) {
        self.receipt = Receipt::Unasked;
        self.review_said();
    }

    /// Returns true if the endpoint is to be asked what arrives on the channel, of which a rate is promised.
    pub(crate) fn asks_receipt(&self) -> bool {
        self.receipt == Receipt::Unasked && self.own.rate.or(self.own.rate_back).is_some()
    }

    /// Packets arrive at `rate`, which refutes what the application says; `None` if nothing refutes it. Returns true if that is news.
    pub(crate) fn set_received(&mut self, rate: Option<Bandwidth>) -> bool {
        let kilobits = |rate: Bandwidth| u32::try_from(rate.bits_per_second() / 1_000).unwrap_or(u32::MAX);
        let receipt = rate.map_or(Receipt::Holds, |rate| Receipt::Refuted { kilobits: kilobits(rate) });
        let is_news = std::mem::replace(&mut self.receipt, receipt) != receipt;
        if is_news {
            self.review_said();
        }
        is_news
    }

    /// The hints that the peer is to know, with the rate of both directions.
    fn to_say(&self) -> Hints {
        let own = self.own();
        Hints { rate_back: own.rate_of_arrivals(), ..own }
    }

    fn review_said(&mut self) {
        self.said.is_outdated = self.to_say() != self.said.hints;
    }

    /// Takes what the peer told an end of `role`. Returns true if it differs from what was told before; frames that are
    /// not newer are ignored.
    pub(crate) fn hear(&mut self, told: Told, role: Role) -> bool {
        if !told.is_news_to(self.told.as_ref().map(|before| &before.0)) {
            return false;
        }
        let before = self.told().unwrap_or(Hints::NONE);
        self.told = Some(Box::new((told, believed(told.hints, role))));
        before != told.hints
    }

    /// Returns the rate of the channel, if that is promised to an endpoint whose connections share it. An end that says so
    /// itself means its own figure: what a peer told about one connection must not count for the others.
    pub(crate) fn rate_of_endpoint(&self) -> Option<Bandwidth> {
        match self.own.shared {
            Sharing::Endpoint => self.own().rate,
            Sharing::Unknown => self.known().rate.filter(|_| self.believed().shared == Sharing::Endpoint),
            Sharing::Shared | Sharing::Dedicated => None,
        }
    }

    /// Returns the next frame about `path` for the peer: the newest hints, if it does not know them and no other frame
    /// about the path is in flight. So there is one in a round trip at most, however often hints change.
    #[inline]
    pub(crate) fn next_frame(&mut self, path: PathId) -> Option<PathHints> {
        if self.may_have_frame() { self.say(path) } else { None }
    }

    /// Returns true if the peer does not know the newest hints, and no frame about the path is in flight.
    #[inline]
    pub(crate) fn may_have_frame(&self) -> bool {
        match self.said.progress {
            TransmissionState::Sent => false,
            TransmissionState::Acknowledged => self.said.is_outdated,
            TransmissionState::Queued => true,
        }
    }

    fn say(&mut self, path: PathId) -> Option<PathHints> {
        let sequence = match self.said.sequence {
            Some(sequence) if self.said.is_outdated => sequence + 1,
            Some(sequence) => sequence,
            None => 0,
        };
        let (hints, progress) = (self.to_say(), TransmissionState::Sent);
        self.said = Said { hints, sequence: Some(sequence), progress, is_outdated: false };
        Some(PathHints { path, sequence, hints })
    }

    /// Takes note that frame number `sequence` was acknowledged, or that it was lost, as `progress` says.
    pub(crate) fn settle(&mut self, sequence: u64, progress: TransmissionState) {
        if self.said.sequence == Some(sequence) && self.said.progress == TransmissionState::Sent {
            self.said.progress = progress;
        }
    }
}

/// Returns `hints` of a channel that brings packets at `received`, which is less than they promise. A figure that was said of one
/// direction only was meant for both, and holds for neither.
pub(crate) fn lowered(hints: Hints, received: Option<Bandwidth>) -> Hints {
    let Some(received) = received else { return hints };
    let lower = |rate: Bandwidth| rate.min(received);
    match hints.rate_back {
        Some(back) => Hints { rate_back: Some(lower(back)), ..hints },
        None => Hints { rate: hints.rate.map(lower), ..hints },
    }
}

/// Returns what an end of `role` believes of `told`: nothing that would harm anybody but the peer.
///
/// Channels belong to clients, who open paths over interfaces of their own. A server cannot know what a byte costs a
/// client, nor what its endpoint shares with nobody else.
fn believed(told: Hints, role: Role) -> Hints {
    let at_least = |rate: &Bandwidth| *rate >= LEAST_RATE;
    let plausible = Hints {
        rate: told.rate.filter(at_least),
        rate_back: told.rate_back.filter(at_least),
        delay: told.delay.filter(|delay| *delay <= LONGEST_DELAY),
        ..told
    };
    match role {
        Role::Server => plausible,
        Role::Client => Hints {
            price_per_byte: None,
            metering: Metering::Unknown,
            shared: match plausible.shared {
                Sharing::Endpoint => Sharing::Shared,
                sharing => sharing,
            },
            ..plausible
        },
    }
}

/// Hints about paths that are not open yet: frames may overtake the packets that open a path.
#[derive(Debug, Default)]
pub(crate) struct EarlyHints {
    told: BTreeMap<PathId, Told>,
}

impl EarlyHints {
    /// Keeps the newest hints about `path`.
    pub(crate) fn hear(&mut self, path: PathId, told: Told) {
        let known = self.told.get(&path);
        if told.is_news_to(known) && (known.is_some() || self.told.len() < MAX_EARLY) {
            self.told.insert(path, told);
        }
    }

    /// Takes the hints about `path`, which opens or never will.
    pub(crate) fn take(&mut self, path: PathId) -> Option<Told> {
        self.told.remove(&path)
    }
}

#[cfg(test)]
mod tests;
