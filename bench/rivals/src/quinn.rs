//! quinn: a single path, which moves to the link that the system prefers once there is news of links.
//!
//! The socket is bound to the address and the interface of that link, and replaced when another is preferred (`Endpoint::rebind`).
//! Without news it stays where it is.

use crate::arguments::Arguments;
use crate::loads::{self, Acknowledged, Line};
use crate::news::{self, Way};
use crate::quic_pair::quinn as pair;
use crate::record::{Counter, Record};
use anyhow::{Context, Result};
use hvq::links::Links;
use quinn::{Connection, Endpoint, EndpointConfig, RecvStream, TokioRuntime, TransportConfig};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Serves until it is given up.
pub async fn serve(arguments: &Arguments, sent: &Counter) -> Result<()> {
    pair::serve(arguments, TransportConfig::default(), sent).await
}

/// Plays the loads until it is given up.
pub async fn play(arguments: &Arguments, record: &Record) -> Result<()> {
    let server = arguments.server.ip();
    let mut links = Links::watch().await?;
    let first =
        news::ways(&links.current(), server).into_iter().next().context("no link leads to the server")?;
    let used = Rc::new(RefCell::new(first));
    let config = pair::client(arguments, TransportConfig::default())?;
    let (mut endpoints, mut lines) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let socket = used.borrow().socket()?;
        let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime))?;
        let connection = endpoint.connect_with(config.clone(), arguments.server, &arguments.name)?.await?;
        lines.push(QuinnLine { connection, used: Rc::clone(&used) });
        endpoints.push(endpoint);
    }
    let lines = <[QuinnLine; 3]>::try_from(lines).ok().context("there are three connections")?;
    let following = async {
        loop {
            let links = links.changed().await;
            let Some(way) = news::ways(&links, server).into_iter().next() else { continue };
            if *used.borrow() == way {
                continue;
            }
            // An address that is gone again is news that comes again.
            for endpoint in &endpoints {
                let _moved = way.socket().and_then(|socket| endpoint.rebind(socket));
            }
            used.replace(way);
        }
    };
    tokio::select! {
        played = loads::play(lines, record) => played,
        () = following => Ok(()),
    }
}

/// A connection.
struct QuinnLine {
    connection: Connection,
    used: Rc<RefCell<Way>>,
}

impl Line for QuinnLine {
    type Download = RecvStream;

    async fn ask(&self, request: &[u8]) -> Result<usize> {
        pair::ask(&self.connection, request).await
    }

    async fn begin(&self) -> Result<RecvStream> {
        pair::begin(&self.connection).await
    }

    async fn read(download: &mut RecvStream) -> Result<usize> {
        pair::read(download).await
    }

    fn send(&self, datagram: &[u8]) {
        // One that there is no room for is lost, as others are.
        let _sent = self.connection.send_datagram(datagram.to_vec().into());
    }

    async fn receive(&self) -> Result<()> {
        self.connection.read_datagram().await?;
        Ok(())
    }

    fn acknowledged(&self) -> Vec<Acknowledged> {
        let link = self.used.borrow().link.clone();
        vec![Acknowledged { path: String::new(), link, mark: self.connection.rtt().as_nanos() }]
    }
}
