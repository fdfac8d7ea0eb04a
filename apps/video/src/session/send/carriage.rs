//! Carriage of the layers of a picture: on streams of their own, in datagrams, or as RTP over QUIC.

use super::admission_queue::{AdmissionQueue, EncodedLayer};
use super::{Carriage, FLIGHT, Form, Progress, SendOptions, Tell, Vehicle};
use crate::fragment;
use crate::gate::Layer;
use crate::layers::{LAYERS, LayerSet};
use crate::message::{Deadlines, LayerHeader, Reference, urgency};
use crate::playout::Wait;
use crate::rtp::{Packetizer, PictureKind};
use crate::session::time_of_day;
use crate::vpx::Encoded;
use crate::{roq, superframe};
use hvq::{Connection, ConnectionError, Priority, SendDatagramError};
use hvq_program::failure::{Exit, Failure, exit_of};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// The size of RTP packets in streams, and of datagrams until the path's size is known.
const PACKET: usize = 1200;
/// The maximum size of a flow's number in front of an RTP packet, in bytes (RFC 9000, §16).
const FLOW: usize = 8;

/// A picture: what is known of all its layers, and the layers.
pub(super) type EncodedPicture = (LayerHeader, Encoded);

/// Sends pictures over a connection.
pub(super) struct Carrier {
    connection: Connection,
    carriage: Carriage,
    tell: Tell,
    progress: Arc<Progress>,
    rtp: Packetizer,
    /// The time at which the first picture was taken.
    start: Option<Duration>,
    queue: Arc<AdmissionQueue>,
    sending: JoinSet<()>,
}

impl Carrier {
    /// Sends over `connection`.
    pub(super) fn new(connection: &Connection, options: &SendOptions, progress: &Arc<Progress>) -> Self {
        let SendOptions { carriage, tell, .. } = *options;
        let room = connection.max_datagram_size().filter(|_| carriage.vehicle == Vehicle::Datagrams);
        let most = room.map_or(PACKET, |room| room.saturating_sub(FLOW).min(PACKET));
        Self {
            connection: connection.clone(),
            carriage,
            tell,
            progress: progress.clone(),
            rtp: Packetizer::new(random() as u32, (random() as u16, random() as u32), most),
            start: None,
            queue: Arc::new(AdmissionQueue::new()),
            sending: JoinSet::new(),
        }
    }

    /// Sends a picture, without the layers whose rate is 0.
    pub(super) async fn send(&mut self, (header, frame): EncodedPicture) -> Result<(), Failure> {
        while self.sending.try_join_next().is_some() {}
        let rates = self.progress.rates();
        let wanted = (0..LAYERS).filter(|layer| rates[*layer] > 0).fold(LayerSet::NONE, LayerSet::with);
        let skipped = LAYERS - wanted.bits().count_ones() as usize;
        self.progress.skipped.fetch_add(skipped as u64, Ordering::Relaxed);
        if let Form::Rtp(flow) = self.carriage.form {
            return self.send_rtp(flow, &header, &frame.layers[..wanted.depth()], frame.fresh).await;
        }
        let deadlines = Deadlines::of(FLIGHT, Wait::PAPER);
        for (layer, data) in frame.layers.into_iter().enumerate().filter(|(layer, _)| wanted.contains(*layer))
        {
            let left =
                deadlines.of_layer(layer).saturating_sub(time_of_day().saturating_sub(header.captured));
            let reference = if frame.fresh.contains(layer) { Reference::Fresh } else { Reference::Earlier };
            let header = LayerHeader { layer, reference, ..header };
            self.progress.sent.fetch_add(u32::from(layer > 0), Ordering::Relaxed);
            match self.carriage.vehicle {
                Vehicle::Datagrams => self.send_fragments(&header, &data, left)?,
                Vehicle::Streams if layer > 0 && self.tell == Tell::Deadlines => {
                    self.send_in_time(&header, &data, left);
                }
                Vehicle::Streams => self.send_stream(&header, &data, left).await?,
            }
        }
        Ok(())
    }

    /// Waits for what is under way, but not for longer than `most`.
    pub(super) async fn finish(mut self, most: Duration) {
        let _late = timeout(most, async { while self.sending.join_next().await.is_some() {} }).await;
    }

    fn priority(&self, layer: usize) -> Priority {
        match self.tell {
            Tell::Nothing => Priority::DEFAULT,
            Tell::Deadlines | Tell::Priorities => Priority { urgency: urgency(layer), incremental: false },
        }
    }

    /// A layer as a message on a stream of its own, sent when those below it are not held up by it, and taken back when `left`
    /// is over.
    fn send_in_time(&mut self, header: &LayerHeader, data: &[u8], left: Duration) {
        let LayerHeader { frame, layer, reference, .. } = *header;
        let encoded = EncodedLayer {
            layer: Layer { frame, layer, reference, bytes: data.len() },
            message: [&header.encode()[..], data].concat(),
            priority: self.priority(layer),
            until: Instant::now() + left,
        };
        let (queue, connection, progress) =
            (self.queue.clone(), self.connection.clone(), self.progress.clone());
        self.sending.spawn(async move {
            if !queue.send(encoded, &connection).await {
                progress.late.fetch_add(1, Ordering::Relaxed);
            }
        });
    }

    /// A layer as a message on a stream of its own, which is sent until it arrives. It is due when `left` is over.
    async fn send_stream(
        &mut self,
        header: &LayerHeader,
        data: &[u8],
        left: Duration,
    ) -> Result<(), Failure> {
        // Streams are opened in the order of the frames; the peer permits many at a time.
        let mut stream = self.connection.open_uni().await.map_err(gone)?;
        let (tell, priority) = (self.tell, self.priority(header.layer));
        let message = [&header.encode()[..], data].concat();
        self.sending.spawn(async move {
            stream.set_priority(priority);
            let sent = async {
                stream.write_chunk(message.into()).await?;
                if tell == Tell::Deadlines {
                    stream.end_message(Some(left))?;
                }
                stream.finish()?;
                stream.stopped().await
            };
            let _gone = sent.await;
        });
        Ok(())
    }

    /// A layer in datagrams, each of which is dropped if it has not left in time.
    fn send_fragments(&self, header: &LayerHeader, data: &[u8], left: Duration) -> Result<(), Failure> {
        let most = self.connection.max_datagram_size().unwrap_or(PACKET);
        // A base layer is of use even if it is late.
        let deadline = (self.tell == Tell::Deadlines && header.layer > 0).then_some(left);
        let Some(fragments) = fragment::fragments(header, data, most) else {
            return Err(Failure::new(
                Exit::Runtime,
                format!("a layer of {} bytes does not fit datagrams of {most}", data.len()),
            ));
        };
        fragments.into_iter().try_for_each(|part| self.datagram(part, header.layer, deadline))
    }

    /// A picture as RTP: all layers are one frame to players, so none is taken back.
    async fn send_rtp(
        &mut self,
        flow: u64,
        header: &LayerHeader,
        layers: &[Vec<u8>],
        fresh: LayerSet,
    ) -> Result<(), Failure> {
        let start = *self.start.get_or_insert(header.captured);
        let picture = superframe::join(&layers.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let kind = if fresh == LayerSet::ALL { PictureKind::Key } else { PictureKind::Inter };
        let since = header.captured.saturating_sub(start);
        let packets = self.rtp.packets(header.frame, since, (&picture, kind));
        self.progress.sent.fetch_add(layers.len().saturating_sub(1) as u32, Ordering::Relaxed);
        if self.carriage.vehicle == Vehicle::Datagrams {
            let mut packets = packets.into_iter();
            return packets.try_for_each(|packet| self.datagram(roq::datagram(flow, &packet), 0, None));
        }
        let mut stream = self.connection.open_uni().await.map_err(gone)?;
        stream.set_priority(self.priority(0));
        let message = roq::stream(flow, &packets);
        self.sending.spawn(async move {
            let _gone = async {
                stream.write_chunk(message.into()).await?;
                stream.finish()?;
                stream.stopped().await
            }
            .await;
        });
        Ok(())
    }

    fn datagram(&self, bytes: Vec<u8>, layer: usize, deadline: Option<Duration>) -> Result<(), Failure> {
        match self.connection.send_datagram_with(bytes.into(), self.priority(layer), deadline) {
            Ok(()) => Ok(()),
            Err(SendDatagramError::ConnectionLost(end)) => Err(gone(end)),
            Err(refused) => {
                Err(Failure::new(Exit::Connection, format!("the receiver takes no datagrams: {refused}")))
            }
        }
    }
}

fn gone(end: ConnectionError) -> Failure {
    Failure::new(exit_of(&end), format!("the receiver is gone: {end}"))
}

/// Bits that others do not guess: those that the standard library takes of the system for its hash tables.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
