//! The routing of datagrams to connections: by destination connection ID (RFC 9000 §5.2).

use crate::connection::IdChanges;
use crate::endpoint::ConnectionHandle;
use crate::hashing::{KeyedMap, shrink};
use crate::wire::connection_id::ConnectionId;
use std::net::SocketAddr;

/// Connections of one remote address that are asked about a possible stateless reset at most.
const RESET_CANDIDATES: usize = 16;

/// The tables of an endpoint. Peers choose some keys, so the hash is the keyed one of the standard library.
#[derive(Debug, Default)]
pub struct Router {
    by_id: KeyedMap<ConnectionId, ConnectionHandle>,
    /// The connection that was found last: datagrams to one connection ID come in rows.
    latest: Option<(ConnectionId, ConnectionHandle)>,
    /// A few each, in one piece of memory.
    ids: KeyedMap<ConnectionHandle, Vec<ConnectionId>>,
    by_remote: KeyedMap<SocketAddr, Vec<ConnectionHandle>>,
    remotes: KeyedMap<ConnectionHandle, Vec<SocketAddr>>,
}

impl Router {
    /// The connection that answers to `id`.
    pub fn find(&mut self, id: &ConnectionId) -> Option<ConnectionHandle> {
        match &self.latest {
            Some((latest, found)) if latest == id => Some(*found),
            _ => {
                let found = *self.by_id.get(id)?;
                self.latest = Some((*id, found));
                Some(found)
            }
        }
    }

    /// Connections with a path to `remote`, a few at most.
    pub fn at_remote(&self, remote: &SocketAddr) -> Vec<ConnectionHandle> {
        self.by_remote
            .get(remote)
            .map(|all| all.iter().take(RESET_CANDIDATES).copied().collect())
            .unwrap_or_default()
    }

    /// Takes note of what a connection answers to.
    pub(crate) fn synchronise(&mut self, handle: ConnectionHandle, changes: IdChanges) {
        for id in changes.new {
            self.by_id.insert(id, handle);
            let ids = self.ids.entry(handle).or_default();
            if !ids.contains(&id) {
                ids.reserve_exact(1);
                ids.push(id);
            }
        }
        for id in changes.gone {
            self.latest = None;
            self.by_id.remove(&id);
            if let Some(ids) = self.ids.get_mut(&handle) {
                ids.retain(|known| *known != id);
            }
        }
        if let Some(remotes) = changes.remotes {
            self.forget_remotes(handle);
            self.set_remotes(handle, remotes);
        }
    }

    /// Each of two connections is at the other's handle from here on.
    pub fn exchange(&mut self, one: ConnectionHandle, other: ConnectionHandle) {
        self.latest = None;
        for (mine, theirs) in [(one, other), (other, one)] {
            for id in self.ids.get(&mine).into_iter().flatten() {
                self.by_id.insert(*id, theirs);
            }
        }
        exchange_entries(&mut self.ids, one, other);
        let (of_one, of_other) = (self.remotes.get(&one).cloned(), self.remotes.get(&other).cloned());
        self.forget_remotes(one);
        self.forget_remotes(other);
        self.set_remotes(one, of_other.unwrap_or_default());
        self.set_remotes(other, of_one.unwrap_or_default());
    }

    fn set_remotes(&mut self, handle: ConnectionHandle, remotes: Vec<SocketAddr>) {
        for remote in &remotes {
            self.by_remote.entry(*remote).or_default().push(handle);
        }
        self.remotes.insert(handle, remotes);
    }

    /// Drops all entries of a connection.
    pub fn forget(&mut self, handle: ConnectionHandle) {
        self.latest = None;
        for id in self.ids.remove(&handle).unwrap_or_default() {
            self.by_id.remove(&id);
        }
        self.forget_remotes(handle);
        shrink(&mut self.by_id);
        shrink(&mut self.ids);
        shrink(&mut self.by_remote);
        shrink(&mut self.remotes);
    }

    fn forget_remotes(&mut self, handle: ConnectionHandle) {
        for remote in self.remotes.remove(&handle).unwrap_or_default() {
            if let Some(handles) = self.by_remote.get_mut(&remote) {
                handles.retain(|other| *other != handle);
                if handles.is_empty() {
                    self.by_remote.remove(&remote);
                }
            }
        }
    }
}

/// Exchanges what a table holds of two connections.
fn exchange_entries<T>(
    table: &mut KeyedMap<ConnectionHandle, T>,
    one: ConnectionHandle,
    other: ConnectionHandle,
) {
    let (of_one, of_other) = (table.remove(&one), table.remove(&other));
    if let Some(value) = of_other {
        table.insert(one, value);
    }
    if let Some(value) = of_one {
        table.insert(other, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ConnectionHandle = ConnectionHandle(1);
    const B: ConnectionHandle = ConnectionHandle(2);

    fn id(n: u8) -> ConnectionId {
        ConnectionId::new(&[n; 8]).expect("not too long")
    }

    fn remote(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    /// A answers to 1 and 2 and has a path to port 1; B answers to 3 and has paths to ports 1 and 2.
    fn router() -> Router {
        let mut router = Router::default();
        let changes = |new: &[u8], remotes: &[u16]| IdChanges {
            new: new.iter().copied().map(id).collect(),
            gone: Vec::new(),
            remotes: Some(remotes.iter().copied().map(remote).collect()),
        };
        router.synchronise(A, changes(&[1, 2], &[1]));
        router.synchronise(B, changes(&[3], &[1, 2]));
        router
    }

    fn found(router: &mut Router) -> [Option<ConnectionHandle>; 3] {
        [1, 2, 3].map(|n| router.find(&id(n)))
    }

    #[test]
    fn an_id_finds_its_connection_until_it_is_gone() {
        let mut router = router();
        assert_eq!(found(&mut router), [Some(A), Some(A), Some(B)]);
        router.synchronise(A, IdChanges { gone: vec![id(2)], ..IdChanges::default() });
        assert_eq!(found(&mut router), [Some(A), None, Some(B)]);
        assert_eq!(router.find(&id(1)), Some(A));
        router.forget(A);
        assert_eq!(found(&mut router), [None, None, Some(B)], "no ID outlives its connection");
    }

    #[test]
    fn a_remote_address_tells_the_connections_that_have_a_path_there_now() {
        let mut router = router();
        assert_eq!((router.at_remote(&remote(1)), router.at_remote(&remote(2))), (vec![A, B], vec![B]));
        router.synchronise(B, IdChanges { remotes: Some(vec![remote(3)]), ..IdChanges::default() });
        let at = |router: &Router| [1, 2, 3].map(|port| router.at_remote(&remote(port)));
        assert_eq!(at(&router), [vec![A], vec![], vec![B]]);
        router.forget(A);
        assert_eq!(at(&router), [vec![], vec![], vec![B]]);
    }

    #[test]
    fn connections_that_change_places_are_found_at_each_others_handles() {
        let mut router = router();
        assert_eq!(router.find(&id(1)), Some(A));
        router.exchange(A, B);
        assert_eq!(found(&mut router), [Some(B), Some(B), Some(A)]);
        assert_eq!((router.at_remote(&remote(1)), router.at_remote(&remote(2))), (vec![A, B], vec![A]));
        router.forget(B);
        assert_eq!(found(&mut router), [None, None, Some(A)]);
        assert_eq!(router.at_remote(&remote(1)), [A]);
    }
}
