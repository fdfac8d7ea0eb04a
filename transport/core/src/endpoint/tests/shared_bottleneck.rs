//! Tests of the account that connections of one endpoint keep of each other's queue on a channel that they share.

use super::network::{Network, transport};
use crate::PathId;
use crate::connection::{ChannelHint, FourTuple, Multipath, TransportConfig};
use crate::endpoint::ConnectionHandle;
use crate::stream::Direction;
use hvq_scheduler::{Bandwidth, Content, Hints, Item, PathView, Placement, Scheduler, Sharing};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const RTT: Duration = Duration::from_millis(10);

/// The view that a policy was shown with stream data: the backlog, and the part of it that is others'.
type Shown = (usize, Option<usize>);

/// Puts everything on the only path and tells what it was shown.
#[derive(Debug)]
struct Witness(mpsc::Sender<Shown>);

impl Scheduler for Witness {
    fn name(&self) -> &'static str {
        "witness"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        if let Content::Stream { .. } = item.content {
            self.0.send((paths[0].backlog, paths[0].others)).unwrap();
        }
        Placement::On { path: paths[0].id, bytes: item.bytes }
    }
}

fn witnessed(shared: Sharing) -> (TransportConfig, mpsc::Receiver<Shown>) {
    let (sender, shown) = mpsc::channel();
    let mut config = TransportConfig::new(Arc::new(move || Box::new(Witness(sender.clone()))));
    let hints = Hints { rate: Some(Bandwidth::from_mbit(2)), shared, ..Hints::NONE };
    for port in [1000, 443] {
        config.channels.push(ChannelHint::new(super::network::address(port), hints));
    }
    (config, shown)
}

/// Returns the view of the second of two connections when it writes while the first has written `bytes` just before.
fn second_after(bytes: usize, shared: Sharing) -> Shown {
    let (config, shown) = witnessed(shared);
    let mut network = Network::new(config, transport());
    let tuple = network.link(RTT / 2);
    let first = network.connect(tuple);
    let second = network.connect(tuple);
    network.run_for(Duration::from_secs(1));
    for (handle, bytes) in [(first, bytes), (second, 10)] {
        let connection = network.client(handle);
        let id = connection.open(Direction::Bidirectional).unwrap();
        connection.write(id, &vec![7; bytes]).unwrap();
    }
    shown.try_iter().for_each(drop);
    network.run_for(Duration::ZERO);
    shown.try_iter().last().unwrap()
}

#[test]
fn a_connection_knows_at_once_what_another_queued_on_the_channel_of_their_endpoint() {
    let (backlog, others) = second_after(2000, Sharing::Endpoint);
    // 2000 bytes of data, headers and tags.
    assert!(others.is_some_and(|others| (2000..2200).contains(&others)), "{others:?}");
    assert_eq!(Some(backlog), others);
    assert_eq!(second_after(1, Sharing::Endpoint).1.map(|others| others < 100), Some(true));
}

#[test]
fn nothing_is_known_of_others_where_the_channel_is_not_the_endpoints() {
    for shared in [Sharing::Unknown, Sharing::Shared, Sharing::Dedicated] {
        assert_eq!(second_after(2000, shared).1, None, "{shared:?}");
    }
}

#[test]
fn the_queue_of_another_is_gone_when_the_channel_has_carried_it_and_its_own_is_not_others() {
    let (config, shown) = witnessed(Sharing::Endpoint);
    let mut network = Network::new(config, transport());
    let tuple = network.link(RTT / 2);
    let handles = [network.connect(tuple), network.connect(tuple)];
    network.run_for(Duration::from_secs(1));
    let write = |network: &mut Network, handle, bytes: usize| {
        shown.try_iter().for_each(drop);
        let connection = network.client(handle);
        let id = connection.open(Direction::Bidirectional).unwrap();
        connection.write(id, &vec![7; bytes]).unwrap();
        network.run_for(Duration::from_millis(4));
        shown.try_iter().next().unwrap()
    };
    write(&mut network, handles[0], 2000);
    // 4 ms carry 1000 bytes at 2 Mbit/s.
    let (_, others) = write(&mut network, handles[1], 10);
    assert!(others.is_some_and(|others| (1000..1250).contains(&others)), "{others:?}");
    network.run_for(Duration::from_millis(20));
    assert_eq!(write(&mut network, handles[1], 10).1, Some(0));
    let (backlog, others) = write(&mut network, handles[1], 10);
    assert_eq!((backlog, others), (0, Some(0)), "what it sent itself is not of others");
}

#[test]
fn a_connection_that_is_alone_has_no_account() {
    let (config, shown) = witnessed(Sharing::Endpoint);
    let mut network = Network::new(config, transport());
    let tuple = network.link(RTT / 2);
    let handle = network.connect(tuple);
    network.run_for(Duration::from_secs(1));
    let connection = network.client(handle);
    let id = connection.open(Direction::Bidirectional).unwrap();
    connection.write(id, &[7; 2000]).unwrap();
    network.run_for(Duration::from_millis(1));
    assert!(shown.try_iter().all(|(_, others)| others.is_none()));
}

/// Connections over a wide channel, which may open paths over a narrow one.
struct Crowd {
    network: Network,
    narrow: FourTuple,
    handles: Vec<ConnectionHandle>,
}

impl Crowd {
    fn of(connections: usize) -> Self {
        let mut config = transport();
        config.set_multipath(Multipath::UpTo(PathId(2)));
        let mut network = Network::new(config.clone(), config);
        let wide = network.link(RTT / 2);
        let narrow = network.link(RTT / 2);
        let (rate, shared) = (Some(Bandwidth::from_mbit(2)), Sharing::Endpoint);
        let hints = Hints { rate, shared, ..Hints::NONE };
        let hint = ChannelHint::new(narrow.local, hints);
        Arc::get_mut(&mut network.client_config.transport).unwrap().channels.push(hint);
        let handles = (0..connections).map(|_| network.connect(wide)).collect();
        network.run_for(Duration::from_secs(1));
        Self { network, narrow, handles }
    }

    /// Has every connection open a path over the narrow channel now: the milliseconds until each sends there.
    fn open_all(&mut self) -> Vec<u128> {
        let begun = self.network.now;
        let open = |handle: &ConnectionHandle| {
            (*handle, self.network.client(*handle).open_path(self.narrow, begun).unwrap())
        };
        let opened: Vec<_> = self.handles.iter().map(open).collect();
        let mut times = vec![None; opened.len()];
        while times.contains(&None) {
            self.network.run_for(Duration::from_millis(1));
            let after = self.network.now.since(begun);
            assert!(after < Duration::from_secs(1), "{times:?}");
            for (time, &(handle, path)) in times.iter_mut().zip(&opened) {
                let sent = self.network.client(handle).path_stats(path).unwrap().counters.bytes_sent;
                *time = time.or((sent > 0).then_some(after.as_millis()));
            }
        }
        times.into_iter().flatten().collect()
    }
}

#[test]
fn those_that_open_paths_on_a_narrow_channel_wait_for_each_other() {
    assert_eq!(Crowd::of(1).open_all(), [1]);
    let mut times = Crowd::of(6).open_all();
    times.sort_unstable();
    // A challenge takes 4.8 ms at 2 Mbit/s, and a queue of 5 ms is negligible. Answers are in the queue, too.
    let least = [0, 0, 4, 9, 14, 19];
    assert!(times.iter().zip(least).all(|(time, least)| *time > least), "{times:?}");
    assert!(times[1] == 1 && times[5] < 60, "{times:?}");
}

/// Returns the bytes that the first of so many connections of a client sends at once to open a path of which nothing is promised.
fn opening_bytes(connections: usize) -> u64 {
    let mut config = transport();
    config.set_multipath(Multipath::UpTo(PathId(2)));
    let mut network = Network::new(config.clone(), config);
    let [first, second] = [RTT / 2; 2].map(|delay| network.link(delay));
    let handles: Vec<_> = (0..connections).map(|_| network.connect(first)).collect();
    network.run_for(Duration::from_secs(1));
    let begun = network.now;
    let path = network.client(handles[0]).open_path(second, begun).unwrap();
    network.run_for(Duration::from_millis(1));
    network.client(handles[0]).path_stats(path).unwrap().counters.bytes_sent
}

#[test]
fn few_connections_open_their_paths_with_padding_and_many_without() {
    let bytes = [1, 4, 5].map(opening_bytes);
    assert!(bytes[0] >= 5 * 1_200 && bytes[1] == bytes[0] && bytes[2] < 2 * 1_200, "{bytes:?}");
}

#[test]
fn a_path_is_opened_at_once_beside_one_that_does_not_answer() {
    let mut crowd = Crowd::of(6);
    crowd.network.links[0].drop = Box::new(|_, _| true);
    for handle in crowd.handles.clone() {
        let connection = crowd.network.client(handle);
        let id = connection.open(Direction::Bidirectional).unwrap();
        connection.write(id, &[7]).unwrap();
    }
    crowd.network.run_for(Duration::from_secs(3));
    assert_eq!(crowd.open_all(), [1; 6]);
}
