//! The steering of datagrams to several workers behind one address: the destination connection ID tells the worker.

use crate::endpoint::ids::ConnectionIds;
use crate::wire::connection_id::{ConnectionId, MAX_LENGTH};
use rand::RngCore;
use std::num::NonZeroU16;
use std::sync::Arc;

/// Bytes at the end of a connection ID that tell the worker. Shorter connection IDs tell none.
const TAIL: usize = 4;
/// The offset of the length of the destination connection ID in a long header, which the ID follows (RFC 8999 §5.1).
const LENGTH_AT: usize = 5;
/// Draws for each worker until a connection ID is for the right one: that none is has a chance of e^-64.
const DRAWS: usize = 64;

/// The generation of one of two groups of workers at the same addresses: those that were there, and those that take
/// over from them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Generation {
    /// The one.
    #[default]
    Even,
    /// The other.
    Odd,
}

impl Generation {
    /// The one that takes over from this one.
    pub const fn next(self) -> Self {
        match self {
            Self::Even => Self::Odd,
            Self::Odd => Self::Even,
        }
    }

    /// The lowest bit of hashes of its connection IDs.
    pub const fn bit(self) -> u32 {
        match self {
            Self::Even => 0,
            Self::Odd => 1,
        }
    }
}

/// The rule by which endpoints that share their addresses share datagrams: a hash of the last four bytes of the destination
/// connection ID. Its lowest bit is that of the group's generation; the rest tells the worker. Workers issue connection IDs that are theirs; those that clients choose first (RFC 9000 §7.2) fall to
/// workers at random, and the same one to the same worker.
///
/// The hash is one that classic BPF can compute, and has a secret, so that clients do not choose their worker.
#[derive(Clone, Copy, Debug)]
pub struct Steering {
    workers: NonZeroU16,
    id_length: usize,
    multiplier: u32,
    generation: Generation,
}

impl Steering {
    /// The rule for `workers` endpoints that issue connection IDs of `id_length` bytes, at least four.
    pub fn new(workers: NonZeroU16, id_length: usize, secret: u32) -> Self {
        // An odd factor loses nothing of what it multiplies.
        Self { workers, id_length, multiplier: secret | 1, generation: Generation::Even }
    }

    /// Returns the same rule for workers of `generation`, whose connection IDs differ from those of the other. Both
    /// have to have the same secret.
    pub fn of_generation(self, generation: Generation) -> Self {
        Self { generation, ..self }
    }

    /// The generation of the workers.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> NonZeroU16 {
        self.workers
    }

    /// Bytes of the connection IDs that the workers issue.
    pub fn id_length(&self) -> usize {
        self.id_length
    }

    /// The factor of the hash, which is `(tail * multiplier mod 2^32) / 2^16`, where `tail` is the big-endian number in the last
    /// four bytes: the worker is half of that modulo the number of workers.
    pub fn multiplier(&self) -> u32 {
        self.multiplier
    }

    /// The worker that `datagram` is for; `None` if its connection ID tells none, so that any may have it.
    pub fn worker_of(&self, datagram: &[u8]) -> Option<usize> {
        let first = datagram.first()?;
        let (start, length) = if first & 0x80 == 0 {
            (1, self.id_length)
        } else {
            (LENGTH_AT + 1, usize::from(*datagram.get(LENGTH_AT)?))
        };
        if length > MAX_LENGTH {
            return None;
        }
        self.worker_of_bytes(datagram.get(start..start + length)?)
    }

    /// The worker that packets to `id` are for, if it tells one.
    pub fn worker_of_id(&self, id: &ConnectionId) -> Option<usize> {
        self.worker_of_bytes(id.as_slice())
    }

    fn worker_of_bytes(&self, id: &[u8]) -> Option<usize> {
        let tail = u32::from_be_bytes(*id.last_chunk::<TAIL>()?);
        usize::try_from((self.hash(tail) >> 1) % u32::from(self.workers.get())).ok()
    }

    fn hash(&self, tail: u32) -> u32 {
        tail.wrapping_mul(self.multiplier) >> 16
    }

    /// Returns true if `id` is one of this generation. One that tells no worker may be anybody's.
    fn is_of_generation(&self, id: &ConnectionId) -> bool {
        let tail = id.as_slice().last_chunk::<TAIL>();
        tail.is_none_or(|tail| self.hash(u32::from_be_bytes(*tail)) & 1 == self.generation.bit())
    }
}

/// The connection IDs of one worker: those of `ids` that [`Steering`] sends to it.
#[derive(Clone, Debug)]
pub struct SteeredIds {
    /// The generator of the IDs.
    pub ids: Arc<dyn ConnectionIds>,
    /// The rule.
    pub steering: Steering,
    /// The number of the worker whose IDs they are, from 0 on.
    pub worker: usize,
    /// True if workers of the other generation, with the same reset key, may be there or come.
    pub beside: bool,
}

impl ConnectionIds for SteeredIds {
    fn length(&self) -> usize {
        self.ids.length()
    }

    fn generate(&self, rng: &mut dyn RngCore) -> ConnectionId {
        let draws = 2 * DRAWS * usize::from(self.steering.workers().get());
        let mut id = self.ids.generate(rng);
        for _ in 0..draws {
            if self.steering.worker_of_id(&id) == Some(self.worker) && self.steering.is_of_generation(&id) {
                break;
            }
            id = self.ids.generate(rng);
        }
        id
    }

    fn may_be_elsewhere(&self, id: &ConnectionId) -> bool {
        let is_theirs = self.beside && !self.steering.is_of_generation(id);
        is_theirs || self.ids.may_be_elsewhere(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::ids::RandomIds;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    fn steering(workers: u16) -> Steering {
        Steering::new(NonZeroU16::new(workers).expect("not zero"), 8, 0x9e37_79b9)
    }

    fn short(id: &ConnectionId) -> Vec<u8> {
        [&[0x40], id.as_slice(), &[1; 30]].concat()
    }

    fn long(id: &ConnectionId) -> Vec<u8> {
        [&[0xc0, 0, 0, 0, 1, id.len() as u8], id.as_slice(), &[0; 30]].concat()
    }

    #[test]
    fn whatever_packet_a_worker_s_connection_id_is_in_finds_that_worker() {
        let mut rng = StdRng::seed_from_u64(1);
        for workers in [1, 2, 3, 16, 200] {
            let steering = steering(workers);
            for worker in 0..usize::from(workers) {
                let ids = SteeredIds { ids: Arc::new(RandomIds(8)), steering, worker, beside: false };
                let id = ids.generate(&mut rng);
                assert_eq!((id.len(), ids.length()), (8, 8));
                assert_eq!(steering.worker_of(&short(&id)), Some(worker));
                assert_eq!(steering.worker_of(&long(&id)), Some(worker));
            }
        }
    }

    #[test]
    fn connection_ids_of_two_generations_are_told_apart_and_find_their_workers() {
        let mut rng = StdRng::seed_from_u64(3);
        for generation in [Generation::Even, Generation::Odd] {
            assert_eq!(generation.next().next(), generation);
            let steering = steering(3).of_generation(generation);
            for worker in [0, 1, 2].repeat(50) {
                let id = SteeredIds { ids: Arc::new(RandomIds(8)), steering, worker, beside: false }
                    .generate(&mut rng);
                assert!(steering.is_of_generation(&id));
                assert!(!steering.of_generation(generation.next()).is_of_generation(&id));
                assert_eq!(steering.worker_of(&short(&id)), Some(worker));
            }
        }
    }

    #[test]
    fn what_a_rule_tells_of_itself_is_enough_to_compute_the_worker() {
        let mut rng = StdRng::seed_from_u64(4);
        for (generation, bit) in [(Generation::Even, 0), (Generation::Odd, 1)] {
            let rule = Steering::new(NonZeroU16::new(5).expect("not zero"), 9, 0x9e37_79b8);
            let rule = rule.of_generation(generation);
            assert_eq!((rule.generation(), rule.workers().get(), rule.id_length()), (generation, 5, 9));
            assert_eq!(rule.multiplier() % 2, 1, "an odd factor");
            let ids = SteeredIds {
                ids: Arc::new(RandomIds(rule.id_length())),
                steering: rule,
                worker: 3,
                beside: false,
            };
            for _ in 0..20 {
                let id = ids.generate(&mut rng);
                let tail = u32::from_be_bytes(*id.as_slice().last_chunk().expect("long enough"));
                let hash = tail.wrapping_mul(rule.multiplier()) >> 16;
                assert_eq!((hash & 1, (hash / 2) % 5), (bit, 3));
            }
        }
    }

    #[test]
    fn connection_ids_that_clients_choose_fall_to_all_workers_alike() {
        let mut rng = StdRng::seed_from_u64(2);
        let mut counts = [0; 4];
        for _ in 0..4_000 {
            let length = rng.random_range(8..=20);
            let id = ConnectionId::random(&mut rng, length);
            let worker = steering(4).worker_of(&long(&id)).expect("long enough");
            assert_eq!(steering(4).worker_of(&long(&id)), Some(worker), "a repetition meets the first");
            counts[worker] += 1;
        }
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }

    #[test]
    fn what_tells_no_worker_is_left_where_it_is() {
        // attacks.md A1, A4: datagrams of any bytes and lengths.
        let steering = steering(4);
        let id = |length| ConnectionId::new(&[7; 20][..length]).expect("not too long");
        for none in [
            vec![],
            vec![0x40],
            vec![0x40; 8],
            vec![0xc0; 5],
            long(&id(3)),
            long(&id(0)),
            [&[0xc0, 0, 0, 0, 1, 21], [7; 40].as_slice()].concat(),
            long(&id(20))[..20].to_vec(),
        ] {
            assert_eq!(steering.worker_of(&none), None, "{none:02x?}");
        }
    }
}
