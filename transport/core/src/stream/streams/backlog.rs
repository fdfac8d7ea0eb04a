//! Data of the peer that waits for the application.

use super::Streams;
use crate::wire::frame;

impl Streams {
    /// Returns true if the data of `frame` would wait behind other data of its stream, so that more were held for the peer. The first
    /// data of a stream, data that fills a gap, and data that nobody wants does not.
    pub fn would_wait(&self, frame: &frame::Stream) -> bool {
        let id = frame.id;
        match self.map.get(id).and_then(|stream| stream.receive.as_ref()) {
            Some(receive) => {
                receive.would_wait(frame.offset, frame.offset.saturating_add(frame.data.len() as u64))
            }
            None => !self.is_known(id) && frame.offset > 0,
        }
    }

    /// Returns the bytes of the peer that had arrived at the last call and were not read since.
    pub fn review_backlog(&mut self) -> usize {
        let ids: Vec<_> = self.map.ids().collect();
        let review = |id| self.receive_half(id).map_or(0, |receive| receive.review_backlog());
        let bytes: u64 = ids.into_iter().map(review).sum();
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}
