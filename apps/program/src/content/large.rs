//! Large files, which go out in chunks.

use bytes::Bytes;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::task::spawn_blocking;

/// Bytes that are read at a time.
pub(super) const CHUNK: usize = 64 * 1024;
/// Chunks whose memory is kept to be used again: 8 MiB.
const MOST: usize = 128;

/// A file that is open.
#[derive(Debug)]
pub struct Large {
    file: File,
    memory: Arc<Memory>,
}

/// Memory of chunks that were sent. Fresh memory would be zeroed for each, and come from the system page by page.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Vec<Vec<u8>>>);

impl Memory {
    /// Memory for a chunk of `length` bytes. A client that takes little at a time is given no more than it takes.
    fn take(self: &Arc<Self>, length: usize) -> Lent {
        if length < CHUNK / 2 {
            return Lent { length, bytes: vec![0; length], home: Weak::new() };
        }
        let bytes = self.lock().pop().unwrap_or_else(|| vec![0; CHUNK]);
        Lent { length: length.min(bytes.len()), bytes, home: Arc::downgrade(self) }
    }

    /// Locks the memory, which is whole after every statement.
    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A chunk: the first `length` bytes of its memory, which goes back when nobody needs them any more.
#[derive(Debug)]
struct Lent {
    bytes: Vec<u8>,
    length: usize,
    home: Weak<Memory>,
}

impl Lent {
    fn room(&mut self) -> &mut [u8] {
        let length = self.length;
        self.bytes.get_mut(..length).unwrap_or_default()
    }

    /// The first `length` bytes.
    fn filled(mut self, length: usize) -> Bytes {
        self.length = length.min(self.length);
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(home) = self.home.upgrade() else { return };
        let mut kept = home.lock();
        if kept.len() < MOST {
            kept.push(std::mem::take(&mut self.bytes));
        }
    }
}

impl Large {
    /// Makes a reader of `file`, in chunks whose memory is of `memory`.
    pub(super) fn new(file: File, memory: Arc<Memory>) -> Arc<Self> {
        Arc::new(Self { file, memory })
    }

    /// Reads at most `length` bytes from `start` on.
    ///
    /// # Errors
    /// The file is shorter, or cannot be read.
    pub(super) async fn chunk(self: &Arc<Self>, start: u64, length: usize) -> io::Result<Bytes> {
        let length = length.min(CHUNK);
        if let Some(ready) = self.ready_at(start, length) {
            return Ok(ready);
        }
        let this = self.clone();
        spawn_blocking(move || this.read_at(start, length)).await?
    }

    /// Returns those of the `length` bytes from `start` on that are in memory; `None` if there are none, or nobody can
    /// tell. Handing over to a thread that may wait for the disk takes longer than copying them.
    #[cfg(target_os = "linux")]
    fn ready_at(&self, start: u64, length: usize) -> Option<Bytes> {
        use rustix::io::{ReadWriteFlags, preadv2};
        let mut chunk = self.memory.take(length);
        let into = &mut [io::IoSliceMut::new(chunk.room())];
        let read = preadv2(&self.file, into, start, ReadWriteFlags::NOWAIT).ok().filter(|read| *read > 0)?;
        Some(chunk.filled(read))
    }

    /// Returns nothing: on this system nobody can tell which bytes are in memory.
    #[cfg(not(target_os = "linux"))]
    fn ready_at(&self, _: u64, _: usize) -> Option<Bytes> {
        None
    }

    fn read_at(&self, start: u64, length: usize) -> io::Result<Bytes> {
        let mut chunk = self.memory.take(length);
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(chunk.room())?;
        Ok(chunk.filled(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn memory_goes_back_when_a_chunk_is_of_no_use_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, vec![7; 3 * CHUNK]).unwrap();
        let memory = Arc::new(Memory::default());
        let file = Large::new(File::open(&path).unwrap(), memory.clone());
        let first = file.chunk(0, 1 << 20).await.unwrap();
        let (place, part) = (first.as_ptr(), first.slice(5..9));
        assert_eq!((first.len(), memory.lock().len()), (CHUNK, 0));
        drop(first);
        assert_eq!((memory.lock().len(), &part[..]), (0, &[7; 4][..]));
        drop(part);
        assert_eq!(memory.lock().len(), 1);
        let next = file.chunk(10, CHUNK - 1).await.unwrap();
        assert_eq!((next.len(), next.as_ptr()), (CHUNK - 1, place));
        let short = file.chunk(10, 100).await.unwrap();
        drop(next);
        assert_eq!((short.len(), memory.lock().len()), (100, 1));
        assert!(file.chunk(3 * CHUNK as u64, 1).await.is_err());
        drop((file, memory));
        assert_eq!(short, [7; 100][..]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let memory = Arc::new(Memory::default());
        let lent: Vec<_> = (0..2 * MOST).map(|_| memory.take(CHUNK)).collect();
        drop(lent);
        assert_eq!(memory.lock().len(), MOST);
    }
}
