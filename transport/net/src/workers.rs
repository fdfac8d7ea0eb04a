//! Workers: several endpoints on the same addresses, so that several processors serve them. Each datagram goes to the worker
//! that its connection ID names, and what the kernel brings to another is handed over. A packet that belongs to no connection
//! there is shown to all: it may be a stateless reset, which names none.

mod mailbox;
#[cfg(test)]
mod races;

use crate::endpoint::start;
use crate::runtime;
use crate::runtime::Runtime;
use crate::sockets::{Sockets, Source};
use crate::steering::Shares;
use crate::{Endpoint, EndpointOptions};
use hvq_transport::connection::Datagram;
use hvq_transport::crypto::replay::ReplayGuard;
use hvq_transport::crypto::reset::ResetKey;
use hvq_transport::crypto::token::{Fingerprint, TokenKey};
use hvq_transport::endpoint::ids::RandomIds;
use hvq_transport::endpoint::replay::{ReplayFilter, TokenRegister};
use hvq_transport::endpoint::steering::{Generation, SteeredIds, Steering};
use hvq_transport::endpoint::{EndpointConfig, Strays};
use hvq_transport::time::Instant;
use std::io;
use std::num::NonZeroU16;
use std::sync::{self, Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use mailbox::{Mailbox, Sort};

/// The reason for which workers take no sockets of the program.
const NO_STEERING: &str =
    "workers share addresses of the kernel's sockets alone: sockets of the program belong to one endpoint";
/// The shortest connection IDs that tell a worker.
const SHORTEST_ID: usize = 4;

/// Tells who brings datagrams to the worker that they are for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SteeredBy {
    /// The kernel, with a program of classic BPF that is attached to the sockets (Linux). The workers steer if it is
    /// refused.
    #[default]
    Kernel,
    /// The workers alone, which hand over what is not theirs: the kernel goes by addresses and ports, which change.
    Workers,
}

impl Endpoint {
    /// `count` endpoints on the addresses of `options`, which they share with nobody else. All paths of a connection, and
    /// where it moves, meet at one of them: its connection IDs say which. Keys of tokens, resets and the memory of 0-RTT are
    /// shared, so that what one says to strangers holds for all, and a token of an earlier connection proves an address once,
    /// to whichever of them. The bound of memory is shared, too; the other limits of `options` are for each.
    ///
    /// # Errors
    /// Returns the errors of [`Endpoint::new`]; also an error if `options` has no address, or connection IDs of less
    /// than four bytes, or sockets of the program.
    pub fn workers(
        options: EndpointOptions,
        count: NonZeroU16,
        steered_by: SteeredBy,
    ) -> io::Result<Vec<Self>> {
        Self::group(options, count, Group { steered_by, succession: None })
    }

    /// Makes endpoints like [`Endpoint::workers`], but the addresses may be shared with another process that has the
    /// same [`Succession`] but for its generation. New connections come to the process that was there last, and
    /// datagrams of a connection go to the process that has it: that may go on with its connections, and end.
    ///
    /// Both need the same keys of stateless resets and of tokens, and run as the same user. Packets to connection IDs of the
    /// other generation are not answered with stateless resets: a process that is started again after a crash resets the
    /// connections of before if it has the generation of the one that crashed.
    ///
    /// # Errors
    /// Returns the errors of [`Endpoint::workers`]; also an error if there are workers before and the kernel does not
    /// steer datagrams, which Linux does.
    pub fn succeeding(
        options: EndpointOptions,
        count: NonZeroU16,
        succession: Succession,
    ) -> io::Result<Vec<Self>> {
        let group = Group { steered_by: SteeredBy::Kernel, succession: Some(succession) };
        Self::group(options, count, group)
    }

    fn group(options: EndpointOptions, count: NonZeroU16, group: Group) -> io::Result<Vec<Self>> {
        let EndpointOptions { config, server, local, sockets, runtime } = options;
        if local.is_empty() {
            return Err(invalid("workers need an address to share"));
        }
        if !sockets.is_empty() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, NO_STEERING));
        }
        let runtime = runtime.map_or_else(runtime::current, Ok)?;
        let fresh = || Sockets::new(Source::Pinned, Arc::clone(&runtime));
        let (configs, steering) = shared(config, count, (group.succession.as_ref(), &*runtime))?;
        let boxes: Arc<[Mailbox]> = configs.iter().map(|_| Mailbox::default()).collect();
        let mut sockets: Vec<Sockets> = configs.iter().map(|_| fresh()).collect();
        let before = group.succession.as_ref().map_or(0, |succession| succession.before);
        for address in &local {
            let mut port = None;
            for sockets in &mut sockets {
                port = Some(match before {
                    0 => sockets.bind_shared(address, port)?,
                    _ => sockets.bind_beside(address)?,
                });
            }
        }
        let is_alone = group.succession.is_none() && count.get() == 1;
        // The kernel steers groups, and one socket is none until another has come: one that nothing is meant for, and that goes
        // once the program is there, which then counts for whoever comes later.
        let mut second = fresh();
        if count.get() == 1 && before == 0 && !is_alone {
            for (address, first) in
                local.iter().zip(sockets.first().map(Sockets::addresses).unwrap_or_default())
            {
                second.bind_shared(address, Some(first.port()))?;
            }
        }
        if group.steered_by == SteeredBy::Kernel
            && !is_alone
            && let Some(Err(error)) =
                sockets.first().map(|first| first.steer(&Shares { rule: steering, before }))
        {
            // Another process would get what is for this one, and the other way round.
            if before > 0 {
                return Err(error);
            }
            tracing::warn!(%error, "the kernel does not steer datagrams: workers hand over what is not theirs");
        }
        drop(second);
        let mut workers = Vec::new();
        for (own, (config, sockets)) in configs.into_iter().zip(sockets).enumerate() {
            let neighbours = Neighbours { steering, own, boxes: boxes.clone() };
            workers.push(start(config, server.clone(), sockets, Some(neighbours))?);
        }
        Ok(workers)
    }
}

/// The arrangement by which workers come to their datagrams.
struct Group {
    steered_by: SteeredBy,
    succession: Option<Succession>,
}

/// The agreement between two processes of which one takes over the addresses from the other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Succession {
    /// A random number that all of them have, and nobody else.
    pub secret: u32,
    /// The generation of this one: another than of the process that is there.
    pub generation: Generation,
    /// Workers of the process that is there; 0 if there is none.
    pub before: u16,
}

impl std::fmt::Debug for Succession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Succession");
        shown.field("generation", &self.generation).field("before", &self.before).finish_non_exhaustive()
    }
}

/// Makes the configurations of the workers, one each: the parts on which they have to agree are the same, their
/// connection IDs differ.
fn shared(
    mut config: EndpointConfig,
    count: NonZeroU16,
    (succession, runtime): (Option<&Succession>, &dyn Runtime),
) -> io::Result<(Vec<EndpointConfig>, Steering)> {
    let ids = config.ids().cloned().unwrap_or_else(|| Arc::new(RandomIds(config.id_length())));
    if ids.length() < SHORTEST_ID {
        return Err(invalid("workers need connection IDs of at least four bytes"));
    }
    let mut secret = [0; 4];
    runtime.fill_random(&mut secret)?;
    let steering = match succession {
        Some(known) => Steering::new(count, ids.length(), known.secret).of_generation(known.generation),
        None => Steering::new(count, ids.length(), u32::from_be_bytes(secret)),
    };
    let mut keys = [[0; 32]; 3];
    for key in &mut keys {
        runtime.fill_random(key)?;
    }
    let [reset, token, replay] = keys;
    // Workers that share the key for resets hand a packet over to the one that its connection ID names before they look at
    // it, and that one alone can tell that there is no such connection.
    //= https://www.rfc-editor.org/rfc/rfc9000#section-5.2.3
    //# Server deployments that use this simple form of load balancing MUST avoid the creation of a stateless reset
    //# oracle; see Section 21.11.
    //= https://www.rfc-editor.org/rfc/rfc9000#section-21.11
    //# endpoints that share a static key for stateless resets (see Section 10.3.2) MUST be arranged so that packets
    //# with a given connection ID always arrive at an instance that has connection state
    //= https://www.rfc-editor.org/rfc/rfc9000#section-21.11
    //# More generally, servers MUST NOT generate a stateless reset if a connection with the corresponding connection
    //# ID could be active on any endpoint using the same static key.
    let reset = config.reset_key().cloned().unwrap_or_else(|| ResetKey::new(&reset));
    let token = config.token_key().cloned().unwrap_or_else(|| TokenKey::new(&token));
    let used = config.used_tokens().cloned().unwrap_or_else(|| Arc::new(UsedTokens::default()));
    let replay = config.replay().cloned().unwrap_or_else(|| Arc::new(ReplayGuard::new(&replay)));
    let memory = config.memory().cloned().unwrap_or_default();
    config
        .set_reset_key(Some(reset))
        .set_token_key(Some(token))
        .set_used_tokens(Some(used))
        .set_replay(Some(replay))
        .set_memory(Some(memory))
        .set_strays(Strays::Kept);
    // The kernel brings packets to sockets of the other generation for a moment when one of the group is closed.
    let beside = succession.is_some();
    let own = |worker| {
        let ids = SteeredIds { ids: ids.clone(), steering, worker, beside };
        config.clone().set_ids(Some(Arc::new(ids))).clone()
    };
    Ok(((0..usize::from(count.get())).map(own).collect(), steering))
}

/// The tokens that were used, whichever worker they were shown to. A token is looked at once a connection.
#[derive(Debug, Default)]
struct UsedTokens(Mutex<ReplayFilter>);

impl UsedTokens {
    /// Locks the filter, which is whole after every statement, even one that panicked.
    fn lock(&self) -> MutexGuard<'_, ReplayFilter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenRegister for UsedTokens {
    fn is_fresh(&self, token: &Fingerprint, issued: Instant) -> bool {
        self.lock().is_fresh(token, issued)
    }

    fn note(&self, token: Fingerprint, now: Instant) {
        self.lock().note(token, now);
    }
}

/// The workers of a group, as one of them sees them.
#[derive(Debug)]
pub(crate) struct Neighbours {
    steering: Steering,
    own: usize,
    boxes: Arc<[Mailbox]>,
}

impl Neighbours {
    /// Hands over what of `incoming` is for others, and adds what they handed over, and to `strays` what they knew no connection
    /// for; returns how many went.
    pub(crate) fn share_out(
        &self,
        incoming: &mut Vec<Datagram>,
        strays: &mut Vec<Datagram>,
        waker: &Waker,
    ) -> u64 {
        let mut handed_over = 0;
        for datagram in incoming.extract_if(.., |datagram| self.other(datagram).is_some()) {
            if let Some(mailbox) = self.other(&datagram).and_then(|worker| self.boxes.get(worker)) {
                mailbox.put(datagram, Sort::Its);
                handed_over += 1;
            }
        }
        if let Some(own) = self.boxes.get(self.own) {
            own.take(waker, incoming, strays);
        }
        handed_over
    }

    /// Shows all others a packet that this worker knows no connection for.
    pub(crate) fn show(&self, stray: &Datagram) {
        for (_, mailbox) in self.boxes.iter().enumerate().filter(|(worker, _)| *worker != self.own) {
            mailbox.put(stray.clone(), Sort::Stray);
        }
    }

    fn other(&self, datagram: &Datagram) -> Option<usize> {
        self.steering.worker_of(&datagram.bytes).filter(|worker| *worker != self.own)
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        if let Some(own) = self.boxes.get(self.own) {
            own.close();
        }
    }
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

#[cfg(test)]
mod tests {
    use super::mailbox::SHOWN;
    use super::*;
    use bytes::BytesMut;
    use hvq_transport::connection::Ecn;

    fn group(workers: u16) -> Vec<Neighbours> {
        let count = NonZeroU16::new(workers).unwrap();
        let boxes: Arc<[Mailbox]> = (0..workers).map(|_| Mailbox::default()).collect();
        let steering = Steering::new(count, 8, 1);
        (0..workers.into()).map(|own| Neighbours { steering, own, boxes: boxes.clone() }).collect()
    }

    fn datagram() -> Datagram {
        let address = ([127, 0, 0, 1], 443).into();
        Datagram { local: address, remote: address, ecn: Ecn::NotEct, bytes: BytesMut::from(&[0x40; 60][..]) }
    }

    /// Returns the number of datagrams that a worker finds: its own, and strays.
    fn found(worker: &Neighbours) -> (usize, usize) {
        let (mut its, mut strays) = (Vec::new(), Vec::new());
        worker.share_out(&mut its, &mut strays, Waker::noop());
        (its.len(), strays.len())
    }

    #[test]
    fn a_packet_of_no_connection_is_shown_to_all_others_once() {
        let workers = group(3);
        workers[1].show(&datagram());
        assert_eq!(workers.iter().map(found).collect::<Vec<_>>(), [(0, 1), (0, 0), (0, 1)]);
        assert_eq!(workers.iter().map(found).collect::<Vec<_>>(), [(0, 0); 3]);
    }

    #[test]
    fn what_nobody_takes_in_is_bounded_and_leaves_room_for_what_is_its() {
        let workers = group(2);
        let owner = workers[0].steering.worker_of(&datagram().bytes).unwrap();
        let (owner, other) = (&workers[owner], &workers[1 - owner]);
        for _ in 0..10 * SHOWN {
            other.show(&datagram());
        }
        let mut incoming = vec![datagram()];
        let handed = other.share_out(&mut incoming, &mut Vec::new(), Waker::noop());
        assert_eq!((handed, incoming.len()), (1, 0));
        assert_eq!(found(owner), (1, SHOWN));
    }
}
