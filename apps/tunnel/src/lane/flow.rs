//! One TCP flow on a stream of its own: from the SYN of a program to the last acknowledgement.

use super::endpoint::{Endpoint, Offload, Outgoing, Read, Stage};
use super::request::{Answer, Opened, Requests};
use super::tuple::Tuple;
use crate::importance::StreamImportance;
use bytes::Buf;
use hvq_emulation::tun::packet::Header;
use hvq_h3::{Code, Receiving, Sending};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};
use tokio::time::{sleep, timeout};

/// Bytes that are read from a program at a time.
const CHUNK: usize = 64 << 10;
/// Segments that are treated at a time.
const BATCH: usize = 64;
/// The time for which a flow that is over answers segments that come again.
const LINGER: Duration = Duration::from_secs(1);
/// The time that a program may take to acknowledge the last bytes of a flow.
const GOODBYE: Duration = Duration::from_secs(60);
/// No timer is due.
const NEVER: Duration = Duration::from_secs(3600);

/// The way to the programs behind the tunnel's device.
#[derive(Clone)]
pub(crate) struct Output {
    /// Hands them a packet.
    pub(crate) hand: Arc<dyn Fn(Outgoing) + Send + Sync>,
    /// The work that is left to the device.
    pub(crate) offload: Offload,
}

/// A segment of a program that waits, with the room that it takes.
pub(crate) struct Waiting {
    /// Its bytes.
    pub(crate) packet: Vec<u8>,
    /// Free again with the segment.
    pub(crate) _room: OwnedSemaphorePermit,
}

/// The end of a flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It is over.
    Over,
    /// The server has no room for it: its SYN is to go as a packet.
    Unplaced(Vec<u8>),
}

/// Carries the flow `tuple`, whose SYN has come and whose further `segments` come. The program is answered once the server has
/// reached the host or has failed to (RFC 9293 §3.10.7.1 then).
pub(crate) async fn run(
    tuple: Tuple,
    syn: Vec<u8>,
    mut segments: mpsc::Receiver<Waiting>,
    requests: Arc<Requests>,
    output: Output,
) -> Outcome {
    let answer = tokio::select! {
        answer = requests.open(tuple.destination) => answer,
        () = given_up(&mut segments) => return Outcome::Over,
    };
    match answer {
        Answer::Open(opened) => {
            let mut endpoint = Endpoint::new(tuple, output.offload);
            endpoint.receive(syn);
            Flow::new(endpoint, output).carry(segments, *opened, &requests).await;
        }
        Answer::Refused => {
            if let Some(reset) = Endpoint::refuse(tuple, syn, output.offload) {
                (output.hand)(reset);
            }
        }
        Answer::NoRoom => return Outcome::Unplaced(syn),
        // The program asks again, and again, as of a host that does not answer.
        Answer::Silence => {}
    }
    Outcome::Over
}

/// Waits until the program gives up before it was answered. It repeats its SYN meanwhile.
async fn given_up(segments: &mut mpsc::Receiver<Waiting>) {
    while let Some(segment) = segments.recv().await {
        let header = Header::read(&segment.packet);
        if header.and_then(|header| Tuple::of(&header)).is_some_and(|(_, flags)| flags.ends()) {
            return;
        }
    }
}

/// The side at which a flow broke off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Broken {
    /// The program reset it.
    Program,
    /// The stream was reset, or the connection is lost.
    Stream,
}

fn is_open(stage: Stage) -> bool {
    stage == Stage::Open
}

/// A flow with an open stream.
struct Flow {
    endpoint: Mutex<Endpoint>,
    start: Instant,
    output: Output,
    /// Something was read from the endpoint or written to it.
    changed: Notify,
    /// There may be something to read.
    readable: Notify,
    /// There may be room to write.
    writable: Notify,
}

impl Flow {
    fn new(endpoint: Endpoint, output: Output) -> Self {
        Self {
            endpoint: Mutex::new(endpoint),
            start: Instant::now(),
            output,
            changed: Notify::new(),
            readable: Notify::new(),
            writable: Notify::new(),
        }
    }

    fn endpoint(&self) -> MutexGuard<'_, Endpoint> {
        // Its calls are whole, or the thread is lost with it.
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn endpoint_is_broken(&self) -> bool {
        self.endpoint().is_broken()
    }

    /// Carries bytes both ways until both ends are done, or one breaks off.
    async fn carry(self, mut segments: mpsc::Receiver<Waiting>, opened: Opened, requests: &Requests) {
        let Opened { mut sending, mut receiving } = opened;
        // The program hears that its connection is accepted.
        self.exchange_once();
        let ended = {
            let mut exchange = pin!(self.exchange(&mut segments, is_open));
            let up = self.upwards(&mut sending);
            let down = self.downwards(&mut receiving, requests);
            let mut both = pin!(async { tokio::try_join!(up, down).map(|_| ()) });
            tokio::select! {
                ended = &mut both => ended,
                () = &mut exchange => match self.endpoint_is_broken() {
                    true => Err(Broken::Program),
                    // Nothing more comes from the program; what it sent before is still to be read.
                    false => both.await,
                },
            }
        };
        match ended {
            Ok(()) => {
                let _late = timeout(GOODBYE, self.say_goodbye(&mut segments)).await;
            }
            Err(broken) => {
                tracing::debug!(?broken, "a flow breaks off");
                // RFC 9114 §4.4: a connection that was reset ends with an error of its stream, and the other way round.
                sending.reset(Code::H3_CONNECT_ERROR);
                receiving.stop(Code::H3_CONNECT_ERROR);
                self.endpoint().abort();
                self.exchange_once();
            }
        }
    }

    /// Exchanges segments with the program for as long as `goes_on` says so of its connection.
    async fn exchange(&self, segments: &mut mpsc::Receiver<Waiting>, goes_on: fn(Stage) -> bool) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let (stage, deadline) = self.exchange_once();
            self.readable.notify_one();
            self.writable.notify_one();
            if !goes_on(stage) {
                return;
            }
            tokio::select! {
                count = segments.recv_many(&mut batch, BATCH) => {
                    if count == 0 {
                        return;
                    }
                    let mut endpoint = self.endpoint();
                    batch.drain(..).for_each(|segment| endpoint.receive(segment.packet));
                }
                () = self.changed.notified() => {}
                () = sleep(deadline) => {}
            }
        }
    }

    /// Treats what has changed, and hands what is to be sent to the program.
    fn exchange_once(&self) -> (Stage, Duration) {
        let now = self.start.elapsed();
        let mut endpoint = self.endpoint();
        endpoint.poll(now);
        while let Some(packet) = endpoint.transmit() {
            (self.output.hand)(packet);
        }
        (endpoint.stage(), endpoint.deadline(now).unwrap_or(NEVER))
    }

    /// Waits until the program has all bytes, and answers what comes again for a while.
    async fn say_goodbye(&self, segments: &mut mpsc::Receiver<Waiting>) {
        self.exchange(segments, is_open).await;
        let _over = timeout(LINGER, self.exchange(segments, |stage| stage != Stage::Over)).await;
    }

    /// Carries what the program sends, as fast as the stream takes it.
    async fn upwards(&self, sending: &mut Sending) -> Result<(), Broken> {
        let mut importance = StreamImportance::default();
        loop {
            let read = self.endpoint().read(CHUNK);
            match read {
                Read::Data(data) => {
                    self.changed.notify_one();
                    if let Some(priority) = importance.moved(data.len(), self.start.elapsed()) {
                        sending.set_priority(priority);
                    }
                    sending.data(data).await.map_err(|_| Broken::Stream)?;
                }
                Read::Nothing => self.readable.notified().await,
                Read::End => return sending.finish().await.map_err(|_| Broken::Stream),
                Read::Reset => return Err(Broken::Program),
            }
        }
    }

    /// Writes as much of `data` as there is room for.
    fn write(&self, data: &mut impl Buf) -> Result<(), Broken> {
        let written = self.endpoint().write(data.chunk()).ok_or(Broken::Program)?;
        data.advance(written);
        // With nothing written this half and the exchange of segments would wake each other without end.
        if written > 0 {
            self.changed.notify_one();
        }
        Ok(())
    }

    /// Carries what the host sends, as fast as the program takes it.
    async fn downwards(&self, receiving: &mut Receiving, requests: &Requests) -> Result<(), Broken> {
        let mut importance = StreamImportance::default();
        while let Some(mut data) = receiving.data().await.map_err(|_| Broken::Stream)? {
            if let Some(priority) = importance.moved(data.len(), self.start.elapsed()) {
                requests.reprioritize(receiving.id(), priority);
            }
            self.write(&mut data)?;
            while data.has_remaining() {
                self.writable.notified().await;
                self.write(&mut data)?;
            }
        }
        self.endpoint().finish();
        self.changed.notify_one();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::endpoint::tests::Program;
    use super::*;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn a_program_without_room_is_waited_for_and_not_asked_again_and_again() {
        let tuple = Tuple {
            source: "100.64.200.2:40000".parse().unwrap(),
            destination: "192.0.2.1:443".parse().unwrap(),
        };
        let mut program = Program::new(tuple);
        program.poll(Duration::ZERO);
        let mut endpoint = Endpoint::new(tuple, Offload::Nothing);
        program.sent().into_iter().for_each(|syn| endpoint.receive(syn));
        let flow = Flow::new(endpoint, Output { hand: Arc::new(|_| {}), offload: Offload::Nothing });
        flow.exchange_once();
        // It has not acknowledged our SYN: nothing can be written to it yet.
        let mut data = &b"answer"[..];
        assert_eq!(flow.write(&mut data), Ok(()));
        assert_eq!(data.len(), 6);
        let mut changed = pin!(flow.changed.notified());
        let woken = changed.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(woken, Poll::Pending, "the exchange would ask for more at once, without end");
    }
}
