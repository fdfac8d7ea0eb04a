//! Links for tests.

use crate::links::{Link, LinkKind, LinkRoute, LinkState};
use std::net::SocketAddr;

/// A link that is up, has the address 10.0.INDEX.2/24 and a default route.
pub(crate) struct Shape {
    link: Link,
}

impl Shape {
    pub(crate) fn new(index: u32, name: &str) -> Self {
        let address = format!("10.0.{index}.2/24").parse().expect("an index below 256");
        let link = Link {
            name: name.to_owned(),
            index,
            kind: LinkKind::Ethernet,
            state: LinkState::Up,
            addresses: vec![address],
            routes: Vec::new(),
        };
        Self { link }.metric(100)
    }

    pub(crate) fn metric(mut self, metric: u32) -> Self {
        let destination = "0.0.0.0/0".parse().expect("a network");
        self.link.routes = vec![LinkRoute { destination, metric }];
        self
    }

    pub(crate) fn host(mut self, host: u8) -> Self {
        let text = format!("10.0.{}.{host}/24", self.link.index);
        self.link.addresses = vec![text.parse().expect("an index below 256")];
        self
    }

    pub(crate) fn link(self) -> Link {
        self.link
    }
}

/// The address of the peer, behind the default routes.
pub(crate) fn remote() -> SocketAddr {
    ([192, 0, 2, 1], 443).into()
}
