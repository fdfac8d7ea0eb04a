//! Flow control of a session (draft-ietf-webtrans-http3 §5): the credit of this end, and what it grants the peer.

use super::capsule::SessionCapsule;
use super::limits::{SessionLimits, SessionStreams};
use crate::protocol::shared::lock;
use hvq::SendStream;
use hvq::stats::StreamMeter;
use hvq::transport::wire::varint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Streams of a kind, at most (§5.6.2).
const MOST_STREAMS: u64 = 1 << 60;
/// The time in which a stream that was stopped here ends, after which its bytes are counted when something else happens.
const AFTERMATH: Duration = Duration::from_secs(5);
/// Streams beyond which it is worth looking for those that ended.
const SWEEP: usize = 32;

/// Limits that the peer was told of, and that are remembered.
const MOST_TOLD: usize = 16;

/// A violation of limits, which ends the session with WT_FLOW_CONTROL_ERROR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FlowViolation(pub(super) &'static str);

/// The numbers of the streams of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct StreamCounts {
    uni: u64,
    bidi: u64,
}

impl StreamCounts {
    pub(crate) fn of(&mut self, kind: SessionStreams) -> &mut u64 {
        match kind {
            SessionStreams::Unidirectional => &mut self.uni,
            SessionStreams::Bidirectional => &mut self.bidi,
        }
    }
}

/// The streams that came for a session before it began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Early {
    /// The bytes of its streams.
    pub(crate) received: StreamMeter,
    /// The streams that were refused, for there were too many.
    pub(crate) refused: StreamCounts,
}

/// The bytes that were written on a stream.
#[derive(Debug)]
pub(super) struct Outgoing {
    sent: StreamMeter,
    /// True once nothing more of it is sent for the first time.
    has_ended: AtomicBool,
}

impl Outgoing {
    /// The stream was reset, here or because the peer stopped it: what was not sent yet never will be.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }
}

/// The flow control of a session.
#[derive(Debug)]
pub(super) struct SessionFlow {
    account: Mutex<Account>,
    /// Counts what the peer sends on all streams.
    received: StreamMeter,
    /// Told of when this end has more credit.
    raised: Notify,
    /// Told of when there may be something to say to the peer.
    due: Notify,
}

#[derive(Debug)]
struct Account {
    sending: Sent,
    granted: Granted,
    /// Streams that were stopped here may still come to their end until then.
    aftermath: Option<Instant>,
}

/// The credit that the peer gives, and its use.
#[derive(Debug, Default)]
struct Sent {
    most_data: u64,
    most_streams: StreamCounts,
    /// The limits that capsules said last, which only rise.
    said_data: Option<u64>,
    said_streams: [Option<u64>; 2],
    /// Bytes that were written, without those that never will be sent.
    written: u64,
    live: Vec<(Arc<Outgoing>, u64)>,
    opened: StreamCounts,
    /// The limits that held something back, and were not told to the peer yet.
    blocked: Vec<SessionCapsule>,
    told: Vec<SessionCapsule>,
}

/// The credit that this end gives, and its use.
#[derive(Debug)]
struct Granted {
    limits: SessionLimits,
    data: u64,
    streams: StreamCounts,
    arrived: StreamCounts,
    closed: StreamCounts,
}

impl Sent {
    /// Takes off what was written on streams that ended before it was sent.
    fn sweep(&mut self) {
        let Self { live, written, .. } = self;
        live.retain(|(outgoing, of_stream)| {
            let is_over = outgoing.has_ended.load(Ordering::Relaxed) || outgoing.sent.is_detached();
            if is_over {
                *written -= of_stream.saturating_sub(outgoing.sent.passed());
            }
            !is_over
        });
    }

    fn available(&mut self) -> u64 {
        if self.written >= self.most_data {
            self.sweep();
        }
        self.most_data.saturating_sub(self.written)
    }

    /// Notes that a limit held something back, once for each limit.
    fn hold_back(&mut self, capsule: SessionCapsule) {
        if !self.told.contains(&capsule) {
            if self.told.len() >= MOST_TOLD {
                self.told.clear();
            }
            self.told.push(capsule.clone());
            self.blocked.push(capsule);
        }
    }
}

impl Granted {
    /// The limits that are to be raised: those of which half was used up.
    fn raise(&mut self, consumed: u64) -> Vec<SessionCapsule> {
        let mut capsules = Vec::new();
        let data = consumed.saturating_add(self.limits.data).min(varint::MAX);
        if data.saturating_sub(self.data) >= (self.limits.data / 2).max(1) {
            self.data = data;
            capsules.push(SessionCapsule::MaxData(data));
        }
        for kind in [SessionStreams::Unidirectional, SessionStreams::Bidirectional] {
            let limit = self.limits.streams(kind);
            let streams = self.closed.of(kind).saturating_add(limit).min(MOST_STREAMS);
            let granted = self.streams.of(kind);
            if streams.saturating_sub(*granted) >= (limit / 2).max(1) {
                *granted = streams;
                capsules.push(SessionCapsule::MaxStreams(kind, streams));
            }
        }
        capsules
    }

    fn is_due(&mut self, received: &StreamMeter) -> bool {
        let half = (self.limits.data / 2).max(1);
        let target = received.consumed().saturating_add(self.limits.data).min(varint::MAX);
        received.passed() > self.data || target.saturating_sub(self.data) >= half
    }
}

impl SessionFlow {
    /// The flow control of a session within the limits that both ends said in their SETTINGS, `ours` and `theirs`; `None` if it is not
    /// in force (§5.1).
    pub(super) fn between(ours: SessionLimits, theirs: SessionLimits, early: Early) -> Option<Arc<Self>> {
        if !ours.is_declared() || !theirs.is_declared() {
            return None;
        }
        let counts = |limits: SessionLimits| StreamCounts { uni: limits.uni, bidi: limits.bidi };
        let sending = Sent { most_data: theirs.data, most_streams: counts(theirs), ..Sent::default() };
        let granted = Granted {
            limits: ours,
            data: ours.data,
            streams: counts(ours),
            arrived: early.refused,
            closed: early.refused,
        };
        let account = Mutex::new(Account { sending, granted, aftermath: None });
        Some(Arc::new(Self { account, received: early.received, raised: Notify::new(), due: Notify::new() }))
    }

    /// Counts what the peer sends on all streams of the session.
    pub(super) fn received(&self) -> &StreamMeter {
        &self.received
    }

    /// Takes the credit for one more stream; false if there is none.
    fn take_stream(&self, kind: SessionStreams) -> bool {
        let sending = &mut lock(&self.account).sending;
        let most = *sending.most_streams.of(kind);
        let opened = sending.opened.of(kind);
        if *opened < most {
            *opened += 1;
            return true;
        }
        sending.hold_back(SessionCapsule::StreamsBlocked(kind, most));
        self.due.notify_one();
        false
    }

    /// Waits for the credit for one more stream, which is given back unless the stream is opened.
    pub(super) async fn stream(&self, kind: SessionStreams) -> StreamCredit<'_> {
        loop {
            let mut raised = std::pin::pin!(self.raised.notified());
            raised.as_mut().enable();
            if self.take_stream(kind) {
                return StreamCredit { flow: Some(self), kind };
            }
            raised.await;
        }
    }

    /// Begins to count what is written on `stream`, whose header is not counted.
    pub(super) fn begin(&self, stream: &SendStream, header: u64) -> Arc<Outgoing> {
        let outgoing = Arc::new(Outgoing { sent: StreamMeter::default(), has_ended: AtomicBool::new(false) });
        stream.meter(&outgoing.sent, header);
        let sending = &mut lock(&self.account).sending;
        if sending.live.len() >= SWEEP && sending.live.len() == sending.live.capacity() {
            sending.sweep();
        }
        sending.live.push((outgoing.clone(), 0));
        outgoing
    }

    /// Has `write` write as many of `wanted` bytes as there is credit for, and counts them; `None` if there is no credit.
    pub(super) fn write<E>(
        &self,
        outgoing: &Arc<Outgoing>,
        wanted: usize,
        write: impl FnOnce(usize) -> Poll<Result<usize, E>>,
    ) -> Poll<Result<Option<usize>, E>> {
        let sending = &mut lock(&self.account).sending;
        let available = usize::try_from(sending.available()).unwrap_or(usize::MAX);
        if available == 0 && wanted > 0 {
            sending.hold_back(SessionCapsule::DataBlocked(sending.most_data));
            self.due.notify_one();
            return Poll::Ready(Ok(None));
        }
        let written = write(wanted.min(available));
        if let Poll::Ready(Ok(bytes)) = &written {
            sending.written += *bytes as u64;
            let of_stream = sending.live.iter_mut().find(|(live, _)| Arc::ptr_eq(live, outgoing));
            if let Some((_, of_stream)) = of_stream {
                *of_stream += *bytes as u64;
            }
        }
        written.map(|written| written.map(Some))
    }

    /// Waits until there may be more credit: the peer's limit rose, or for a moment, in which a stream may have ended.
    pub(super) async fn raised(&self) {
        const MOMENT: Duration = Duration::from_millis(100);
        let _late = tokio::time::timeout(MOMENT, self.raised.notified()).await;
    }

    /// A stream of the peer came.
    pub(super) fn on_arrival(&self, kind: SessionStreams) -> Result<(), FlowViolation> {
        let granted = &mut lock(&self.account).granted;
        *granted.arrived.of(kind) += 1;
        match *granted.arrived.of(kind) > *granted.streams.of(kind) {
            true => Err(FlowViolation("more streams than were permitted")),
            false => Ok(()),
        }
    }

    /// A stream of the peer is over.
    pub(super) fn on_closed(&self, kind: SessionStreams) {
        *lock(&self.account).granted.closed.of(kind) += 1;
        self.due.notify_one();
    }

    /// Something was read.
    pub(super) fn on_read(&self) {
        if lock(&self.account).granted.is_due(&self.received) {
            self.due.notify_one();
        }
    }

    /// A stream was stopped here: what is on its way still counts.
    pub(super) fn on_stopped(&self) {
        lock(&self.account).aftermath = Some(Instant::now() + AFTERMATH);
        self.due.notify_one();
    }

    /// A capsule of flow control came.
    pub(super) fn on_capsule(&self, capsule: &SessionCapsule) -> Result<(), FlowViolation> {
        let sending = &mut lock(&self.account).sending;
        match capsule {
            SessionCapsule::MaxData(most) => {
                if sending.said_data.replace(*most).is_some_and(|before| *most <= before) {
                    return Err(FlowViolation("a limit of data that does not rise"));
                }
                sending.most_data = sending.most_data.max(*most);
            }
            SessionCapsule::MaxStreams(kind, most) => {
                let said = &mut sending.said_streams[usize::from(*kind == SessionStreams::Bidirectional)];
                if *most > MOST_STREAMS || said.replace(*most).is_some_and(|before| *most <= before) {
                    return Err(FlowViolation("a limit of streams that does not rise, or cannot be"));
                }
                let limit = sending.most_streams.of(*kind);
                *limit = (*limit).max(*most);
            }
            SessionCapsule::StreamsBlocked(_, at) if *at > MOST_STREAMS => {
                return Err(FlowViolation("a limit of streams that cannot be"));
            }
            // Limits rise by themselves.
            _ => {}
        }
        self.raised.notify_waiters();
        Ok(())
    }

    /// Waits until it is time for [`Self::review`].
    pub(super) async fn due(&self) {
        const TICK: Duration = Duration::from_millis(100);
        let aftermath = lock(&self.account).aftermath;
        match aftermath.is_some_and(|until| Instant::now() < until) {
            true => drop(tokio::time::timeout(TICK, self.due.notified()).await),
            false => self.due.notified().await,
        }
    }

    /// Returns the capsules that the peer is to get.
    ///
    /// # Errors
    /// The peer sent more than it may.
    pub(super) fn review(&self) -> Result<Vec<SessionCapsule>, FlowViolation> {
        let Account { sending, granted, .. } = &mut *lock(&self.account);
        if self.received.passed() > granted.data {
            return Err(FlowViolation("more data than was permitted"));
        }
        let mut capsules = granted.raise(self.received.consumed());
        capsules.append(&mut sending.blocked);
        Ok(capsules)
    }
}

/// The credit for a stream.
#[derive(Debug)]
pub(super) struct StreamCredit<'a> {
    flow: Option<&'a SessionFlow>,
    kind: SessionStreams,
}

impl StreamCredit<'_> {
    /// The stream was opened.
    pub(super) fn spend(mut self) {
        self.flow = None;
    }
}

impl Drop for StreamCredit<'_> {
    fn drop(&mut self) {
        if let Some(flow) = self.flow {
            *lock(&flow.account).sending.opened.of(self.kind) -= 1;
            flow.raised.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SessionStreams::{Bidirectional, Unidirectional};
    use super::*;

    const LIMITS: SessionLimits = SessionLimits { sessions: 2, data: 100, uni: 2, bidi: 4 };

    fn flow() -> Arc<SessionFlow> {
        SessionFlow::between(LIMITS, LIMITS, Early::default()).unwrap()
    }

    #[test]
    fn flow_control_is_in_force_if_both_ends_declare_a_limit() {
        // Draft-ietf-webtrans-http3 §5.1.
        let one = SessionLimits { uni: 1, ..SessionLimits::NONE };
        let between = |ours, theirs| SessionFlow::between(ours, theirs, Early::default()).is_some();
        assert!(between(LIMITS, one) && between(one, LIMITS));
        assert!(!between(LIMITS, SessionLimits::NONE) && !between(SessionLimits::NONE, LIMITS));
    }

    #[test]
    fn limits_rise_once_half_of_them_was_used() {
        // §5.5.
        let flow = flow();
        flow.received.add_whole(49);
        assert_eq!(flow.review(), Ok(vec![]));
        flow.received.add_whole(1);
        assert_eq!(flow.review(), Ok(vec![SessionCapsule::MaxData(150)]));
        for _ in 0..2 {
            flow.on_arrival(Bidirectional).unwrap();
            assert_eq!(flow.review(), Ok(vec![]));
        }
        flow.on_closed(Bidirectional);
        assert_eq!(flow.review(), Ok(vec![]));
        flow.on_closed(Bidirectional);
        assert_eq!(flow.review(), Ok(vec![SessionCapsule::MaxStreams(Bidirectional, 6)]));
    }

    #[test]
    fn more_than_was_granted_is_a_violation() {
        // §5.6.2, §5.6.4.
        let flow = flow();
        for _ in 0..2 {
            flow.on_arrival(Unidirectional).unwrap();
        }
        assert!(flow.on_arrival(Unidirectional).is_err());
        flow.received.add_whole(101);
        assert!(flow.review().is_err());
    }

    #[test]
    fn limits_of_capsules_only_rise() {
        // §5.6.2, §5.6.4: the limits that SETTINGS say are no capsules.
        let flow = flow();
        for most in [50, 120, 200] {
            flow.on_capsule(&SessionCapsule::MaxData(most)).unwrap();
        }
        assert_eq!(lock(&flow.account).sending.most_data, 200);
        assert!(flow.on_capsule(&SessionCapsule::MaxData(200)).is_err());
        flow.on_capsule(&SessionCapsule::MaxStreams(Unidirectional, 3)).unwrap();
        flow.on_capsule(&SessionCapsule::MaxStreams(Bidirectional, 3)).unwrap();
        assert!(flow.on_capsule(&SessionCapsule::MaxStreams(Unidirectional, 3)).is_err());
        for capsule in [SessionCapsule::MaxStreams, SessionCapsule::StreamsBlocked] {
            assert!(self::flow().on_capsule(&capsule(Unidirectional, MOST_STREAMS + 1)).is_err());
        }
    }

    #[test]
    fn a_limit_that_holds_something_back_is_said_once() {
        let flow = flow();
        assert!(flow.take_stream(Unidirectional) && flow.take_stream(Unidirectional));
        assert!(!flow.take_stream(Unidirectional) && !flow.take_stream(Unidirectional));
        assert_eq!(flow.review(), Ok(vec![SessionCapsule::StreamsBlocked(Unidirectional, 2)]));
        assert_eq!(flow.review(), Ok(vec![]));
        drop(StreamCredit { flow: Some(&flow), kind: Unidirectional });
        assert!(flow.take_stream(Unidirectional), "it was given back");
    }
}
