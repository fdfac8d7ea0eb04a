//! Both ways to read the links of this machine, and the rules of a snapshot.

use super::*;

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

#[tokio::test]
async fn loopback_is_found_in_each_way_with_its_address() {
    let told = Links::watch().await.unwrap().current();
    let polled = Links::poll(Duration::from_secs(60)).await.unwrap().current();
    for links in [told, polled] {
        let loopback = links.iter().find(|link| link.kind == LinkKind::Loopback).expect("there is one");
        assert!(loopback.index > 0 && !loopback.name.is_empty(), "{loopback:?}");
        if loopback.state == LinkState::Up {
            assert!(loopback.addresses.contains(&net("127.0.0.1/8")), "{loopback:?}");
        }
    }
}

#[tokio::test]
async fn both_ways_agree_on_what_links_there_are() {
    let told = Links::watch().await.unwrap().current();
    let polled = Links::poll(Duration::from_secs(60)).await.unwrap().current();
    let facts = |links: &[Link]| {
        links.iter().map(|link| (link.index, link.name.clone(), link.addresses.clone())).collect::<Vec<_>>()
    };
    assert_eq!(facts(&told), facts(&polled));
}

#[tokio::test]
async fn those_who_watch_are_told_of_news_and_of_nothing_else() {
    let link = |state| Link {
        name: "wlan0".to_owned(),
        index: 3,
        kind: LinkKind::Wifi,
        state,
        addresses: vec![net("192.0.2.7/24")],
        routes: Vec::new(),
    };
    let (hand, mut told) = tokio::sync::mpsc::channel::<watch::Sender<Arc<[Link]>>>(1);
    let mut links =
        Links::run(&*runtime::current().unwrap(), vec![link(LinkState::Up)], |sender| async move {
            hand.send(sender).await.unwrap();
        });
    let sender = told.recv().await.unwrap();
    publish(&sender, vec![link(LinkState::Up)]);
    assert!(!links.current.has_changed().unwrap(), "the same again is no news");
    publish(&sender, vec![link(LinkState::NoCarrier)]);
    assert_eq!(links.changed().await[0].state, LinkState::NoCarrier);
}

#[tokio::test]
async fn watching_ends_with_the_last_of_those_who_watch() {
    let (hand, mut told) = tokio::sync::mpsc::channel::<watch::Sender<Arc<[Link]>>>(1);
    let links = Links::run(&*runtime::current().unwrap(), Vec::new(), |sender| async move {
        // Told, it works on for ever.
        hand.send(sender).await.unwrap();
        std::future::pending::<()>().await;
    });
    let (other, sender) = (links.clone(), told.recv().await.unwrap());
    drop(links);
    assert!(!sender.is_closed());
    drop(other);
    // Its task is gone, and what it held with it.
    assert!(told.recv().await.is_none());
}

#[test]
fn a_link_reaches_its_own_network_and_those_behind_its_routes() {
    let link = Link {
        name: "eth0".to_owned(),
        index: 2,
        kind: LinkKind::Ethernet,
        state: LinkState::Up,
        addresses: vec![net("192.0.2.7/24"), net("2001:db8::7/64")],
        routes: vec![
            LinkRoute { destination: net("0.0.0.0/0"), metric: 600 },
            LinkRoute { destination: net("2001:db8:1::/48"), metric: 100 },
        ],
    };
    let reaches =
        |from: usize, to: &str| link.reaches(&link.addresses[from], to.parse().expect("an address"));
    assert!(reaches(0, "192.0.2.1") && reaches(0, "198.51.100.1"));
    assert!(reaches(1, "2001:db8::1") && reaches(1, "2001:db8:1::1"));
    assert!(!reaches(1, "2001:db8:2::1"), "there is no route for IPv6");
    assert!(!reaches(0, "127.0.0.1"), "this machine is not behind a default route");
    assert!(!reaches(0, "2001:db8::1") && !reaches(1, "192.0.2.1"), "not from the other version");
    assert_eq!(link.default_metric([192, 0, 2, 1].into()), Some(600));
    assert_eq!(link.default_metric("2001:db8::1".parse().unwrap()), None);
}

#[test]
fn a_snapshot_is_bounded_and_in_order() {
    let link = |index: u32| Link {
        name: format!("dummy{index}"),
        index,
        kind: LinkKind::Other,
        state: LinkState::Up,
        addresses: (0..1000_u32).map(|host| IpNet::new(IpAddr::V4(host.into()), 32).unwrap()).collect(),
        routes: Vec::new(),
    };
    let links = bounded((0..2000).rev().map(link).collect());
    assert_eq!((links.len(), links[0].index, links[0].addresses.len()), (MOST_LINKS, 0, MOST_OF_EACH));
}

#[test]
fn kinds_are_read_by_their_names() {
    for kind in LinkKind::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    assert!("wired".parse::<LinkKind>().unwrap_err().to_string().contains("ethernet, wifi"));
}
