//! The sending half of a request's stream: the response of a server, the request of a client.

use super::priorities::Registered;
use super::shared::Shared;
use crate::Code;
use crate::qpack::{FIELD_OVERHEAD, Line};
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, Response};
use hvq::transport::wire::varint;
use hvq::{Ending, Priority, StreamId, WriteError};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::timeout;

/// The frame types of a response (RFC 9114 §7.2.1, §7.2.2).
const DATA: u8 = 0x00;
const HEADERS: u8 = 0x01;
/// The pseudo-header field of a response (RFC 9114 §4.3.2).
const STATUS: &str = ":status";
/// Bytes that the length of a field section has here: enough for 16,383 bytes, or else four.
const SHORT: usize = 2;

/// Bytes before a piece of the body at most: type and length.
const DATA_HEADER: usize = 9;
/// A body of no more bytes is copied to what goes before it: a piece of its own costs more.
const SMALL: usize = 2048;

/// The reason for which nothing more of a message is sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendError {
    /// The peer wants no more, or the connection ended.
    #[error("the peer takes no more: {0}")]
    Lost(#[from] WriteError),
    /// The fields have more bytes than the peer takes (RFC 9114 §4.2.2): nothing was sent.
    #[error("the header section has more bytes than the peer takes")]
    HeaderTooLarge,
    /// The peer took nothing for as long as it [may pause](Sending::may_pause).
    #[error("the peer takes nothing")]
    Stalled,
    /// The body ended before all came that was [announced](Sending::announce): the stream was reset.
    #[error("the body is shorter than it was said to be")]
    Short,
}

/// The progress of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// Nothing was written.
    Untouched,
    /// Whole frames were.
    Begun,
    /// It was finished or reset.
    Ended,
}

/// The sending half of a request's stream. Dropping it finishes the stream if whole frames were sent, and resets it otherwise,
/// with H3_REQUEST_CANCELLED, or with H3_INTERNAL_ERROR if its thread panics.
pub struct Sending {
    stream: Registered,
    shared: Arc<Shared>,
    progress: Progress,
    /// Frames that were begun and not written: a future that sends was dropped.
    staged: [Bytes; 2],
    /// Bytes of the body that are missing in the frame that was begun.
    owed: u64,
    /// The time for which the peer may take nothing; `None` sets no limit.
    patience: Option<Duration>,
}

impl std::fmt::Debug for Sending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sending")
            .field("id", &self.id())
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let is_behind = self.owed > 0 || self.staged.iter().any(|staged| !staged.is_empty());
        match self.progress {
            Progress::Ended => {}
            _ if std::thread::panicking() => self.reset(Code::H3_INTERNAL_ERROR),
            // RFC 9114 §7.1: a stream that ends within a frame is an error of the whole connection.
            Progress::Begun if !is_behind => {}
            Progress::Begun | Progress::Untouched => self.reset(Code::H3_REQUEST_CANCELLED),
        }
        self.shared.end_half(self.stream.id().0);
    }
}

impl Sending {
    pub(crate) fn new(stream: hvq::SendStream, shared: Arc<Shared>) -> Self {
        let stream = shared.priorities.register(stream);
        shared.begin_half();
        let (progress, staged) = (Progress::Untouched, Default::default());
        Self { stream, shared, progress, staged, owed: 0, patience: None }
    }

    /// From here on, the peer may take nothing of what is sent for so long; without a limit until this is called.
    pub fn may_pause(&mut self, patience: Duration) {
        self.patience = Some(patience);
    }

    /// The stream's ID.
    pub fn id(&self) -> StreamId {
        self.stream.id()
    }

    /// Sets the priority of what is sent: the scheduler's advice (RFC 9218 §10). Default: urgency 3, not incremental.
    pub fn set_priority(&self, priority: Priority) {
        self.stream.lock().set_priority(priority);
    }

    /// Gives the response the priority that the header section of its request asks for (RFC 9218 §5), unless the client has
    /// changed its mind since (§7).
    pub(crate) fn apply_priority(&self, request: &HeaderMap) {
        self.stream.apply_header(request);
    }

    /// Sends status and fields, also of an interim response.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn head(&mut self, head: &Response<()>) -> Result<(), SendError> {
        let status = head.status();
        let head = self.headers(&[(STATUS, status.as_str().as_bytes())], head.headers(), 0)?.freeze();
        self.write([head, Bytes::new()], Ending::Open).await
    }

    /// Sends the header section of a request: these pseudo-header fields and `fields`.
    pub(crate) async fn ask(
        &mut self,
        pseudo: &[(&str, &[u8])],
        fields: &HeaderMap,
    ) -> Result<(), SendError> {
        let head = self.headers(pseudo, fields, 0)?.freeze();
        self.write([head, Bytes::new()], Ending::Open).await
    }

    /// Sends a whole request.
    pub(crate) async fn ask_whole(
        &mut self,
        pseudo: &[(&str, &[u8])],
        fields: &HeaderMap,
        body: Bytes,
    ) -> Result<(), SendError> {
        let frames = with_body(self.headers(pseudo, fields, room(&body))?, body);
        self.write(frames, Ending::Finished).await
    }

    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.1
    //= type=implication
    //= reason=The end of the stream is sent with the last frame; a message in pieces ends by `finish`, or when it is dropped.
    //# After sending a final response, the server MUST close the stream for sending.
    /// Sends a whole response: `body` may be empty.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn whole(&mut self, head: &Response<()>, body: Bytes) -> Result<(), SendError> {
        let status = head.status();
        let frames = self.headers(&[(STATUS, status.as_str().as_bytes())], head.headers(), room(&body))?;
        self.write(with_body(frames, body), Ending::Finished).await
    }

    /// Says that the next `length` bytes of the body will come: they are in one frame, in however many pieces they are sent.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn announce(&mut self, length: u64) -> Result<(), SendError> {
        self.whole_frames()?;
        if length > 0 {
            let mut header = BytesMut::with_capacity(9);
            put_data_header(length, &mut header);
            self.owed = length;
            self.write([header.freeze(), Bytes::new()], Ending::Open).await?;
        }
        Ok(())
    }

    /// Waits until the peer takes a part of the body, and returns how many of `wanted` bytes, one at least: no more should be
    /// read from a file or an origin before they are sent. Nothing is, unless an earlier future was dropped.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn room(&mut self, wanted: usize) -> Result<usize, SendError> {
        self.write_staged().await?;
        let Self { stream, patience, .. } = self;
        let room = poll_fn(|context| stream.lock().poll_room(context, wanted + DATA_HEADER));
        let room = match patience {
            None => room.await?,
            Some(patience) => timeout(*patience, room).await.map_err(|_| SendError::Stalled)??,
        };
        Ok(room.saturating_sub(DATA_HEADER).max(1))
    }

    /// Returns true if the peer takes `bytes` now; ready at once.
    pub async fn has_room(&mut self, bytes: usize) -> bool {
        let stream = &self.stream;
        poll_fn(|context| {
            let room = stream.lock().poll_room(context, bytes);
            Poll::Ready(matches!(room, Poll::Ready(Ok(room)) if room >= bytes))
        })
        .await
    }

    //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.1
    //= type=implication
    //= reason=The stream is that of a request.
    //# DATA frames MUST be associated with an HTTP request or response.
    /// Sends a piece of the body, as fast as the peer takes it.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn data(&mut self, mut data: Bytes) -> Result<(), SendError> {
        if self.owed > 0 {
            let within = usize::try_from(self.owed).unwrap_or(usize::MAX).min(data.len());
            let rest = data.split_off(within);
            // Even if this future is dropped, what is staged is written before all else.
            self.owed -= within as u64;
            self.write([data, Bytes::new()], Ending::Open).await?;
            data = rest;
        }
        if data.is_empty() {
            return Ok(());
        }
        let mut header = BytesMut::with_capacity(9);
        put_data_header(data.len() as u64, &mut header);
        self.write([header.freeze(), data], Ending::Open).await
    }

    /// Sends trailers.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn trailers(&mut self, trailers: &HeaderMap) -> Result<(), SendError> {
        self.whole_frames()?;
        let trailers = self.headers(&[], trailers, 0)?.freeze();
        self.write([trailers, Bytes::new()], Ending::Open).await
    }

    /// Ends the message.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn finish(&mut self) -> Result<(), SendError> {
        self.whole_frames()?;
        match self.write(Default::default(), Ending::Finished).await {
            // All was written, and a peer that wants none of it may still answer (RFC 9114 §4.1).
            Err(SendError::Lost(WriteError::Stopped(_))) => Ok(()),
            finished => finished,
        }
    }

    /// Ends the stream with `code`: what the peer has not got it will not get.
    pub fn reset(&mut self, code: Code) {
        self.progress = Progress::Ended;
        (self.staged, self.owed) = Default::default();
        // A stream that has ended already needs no reset.
        let _ended = self.stream.lock().reset(code.value().min(varint::MAX));
    }

    /// Resets the stream if a frame is not whole: a stream that ends within one, or another frame within, would be an error of
    /// the whole connection (RFC 9114 §7.1).
    fn whole_frames(&mut self) -> Result<(), SendError> {
        if self.owed == 0 {
            return Ok(());
        }
        self.reset(Code::H3_INTERNAL_ERROR);
        Err(SendError::Short)
    }

    /// A HEADERS frame of `fields`, with those of `pseudo` first, and `room` for so many bytes behind it.
    fn headers(
        &self,
        pseudo: &[(&str, &[u8])],
        fields: &HeaderMap,
        room: usize,
    ) -> Result<BytesMut, SendError> {
        let size = |name: &str, value: &[u8]| name.len() as u64 + value.len() as u64 + FIELD_OVERHEAD;
        let first = pseudo.iter().map(|(name, value)| size(name, value)).sum::<u64>();
        let total = fields.iter().map(|(name, value)| size(name.as_str(), value.as_bytes())).sum::<u64>();
        let total = first + total;
        if total > self.shared.peer_limit() {
            return Err(SendError::HeaderTooLarge);
        }
        let mut frame = BytesMut::with_capacity(64 + room + usize::try_from(total).unwrap_or_default());
        frame.put_slice(&[HEADERS, 0, 0]);
        let fields = fields.iter().map(|(name, value)| Line {
            name: name.as_str(),
            value: value.as_bytes(),
            is_sensitive: value.is_sensitive(),
        });
        let pseudo = pseudo.iter().map(|(name, value)| Line::new(name, value));
        self.shared.compress(self.stream.id().0, pseudo.chain(fields), &mut frame);
        Ok(with_length(frame))
    }

    /// Writes what an earlier future left, and then `frames`.
    async fn write(&mut self, frames: [Bytes; 2], ending: Ending) -> Result<(), SendError> {
        self.write_staged().await?;
        self.staged = frames;
        loop {
            self.push(ending).await?;
            if self.staged.iter().all(Bytes::is_empty) {
                break;
            }
        }
        if ending == Ending::Finished {
            self.progress = Progress::Ended;
        }
        Ok(())
    }

    /// Writes what an earlier future left.
    async fn write_staged(&mut self) -> Result<(), SendError> {
        while self.staged.iter().any(|staged| !staged.is_empty()) {
            self.push(Ending::Open).await?;
        }
        Ok(())
    }

    async fn push(&mut self, ending: Ending) -> Result<(), SendError> {
        let Self { stream, staged, patience, .. } = self;
        let pushed = poll_fn(|context| stream.lock().poll_write_chunks(context, staged, ending));
        match patience {
            None => pushed.await?,
            Some(patience) => timeout(*patience, pushed).await.map_err(|_| SendError::Stalled)??,
        };
        self.progress = Progress::Begun;
        Ok(())
    }
}

/// Bytes to keep free behind a header section for `body`, or for its frame header.
fn room(body: &Bytes) -> usize {
    if body.len() > SMALL { DATA_HEADER } else { DATA_HEADER + body.len() }
}

/// The HEADERS frame `frames` with a DATA frame of `body` behind it, unless that is empty.
fn with_body(mut frames: BytesMut, body: Bytes) -> [Bytes; 2] {
    if !body.is_empty() {
        put_data_header(body.len() as u64, &mut frames);
    }
    if body.len() > SMALL {
        return [frames.freeze(), body];
    }
    frames.put_slice(&body);
    [frames.freeze(), Bytes::new()]
}

/// Writes the frame header that goes before `length` bytes of a body.
fn put_data_header(length: u64, to: &mut BytesMut) {
    let mut header = Vec::with_capacity(9);
    header.push(DATA);
    varint::put(&mut header, length);
    to.put_slice(&header);
}

/// `frame`, behind whose type there is room for a length of two bytes, with its length.
fn with_length(mut frame: BytesMut) -> BytesMut {
    let length = frame.len() - 1 - SHORT;
    if let Ok(short) = u16::try_from(length)
        && short < 1 << 14
    {
        let place = frame.iter_mut().skip(1).zip((short | 1 << 14).to_be_bytes());
        place.for_each(|(place, byte)| *place = byte);
        return frame;
    }
    let mut long = Vec::with_capacity(frame.len() + 8);
    long.push(HEADERS);
    varint::put(&mut long, length as u64);
    long.extend(frame.iter().skip(1 + SHORT));
    BytesMut::from(&long[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_frame_is_that_of_what_follows() {
        for length in [0, 1, 63, 64, 16_383, 16_384, 100_000] {
            let mut frame = BytesMut::from(&[HEADERS, 0, 0][..]);
            frame.extend_from_slice(&vec![7; length]);
            let frame = with_length(frame);
            let (said, bytes) = varint::get(&frame[1..]).unwrap();
            assert_eq!((frame[0], said, frame.len() - 1 - bytes), (HEADERS, length as u64, length));
            let mut header = BytesMut::new();
            put_data_header(length as u64, &mut header);
            assert_eq!((header[0], varint::get(&header[1..]).unwrap().0), (DATA, length as u64));
        }
    }
}
