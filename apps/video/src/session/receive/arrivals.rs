//! Arrivals from the network: layers, each from a stream of its own or from the datagrams that it was cut into.

use crate::fragment::Reassembly;
use crate::message::{LARGEST, LayerHeader};
use crate::session::time_of_day;
use hvq::{Connection, ConnectionError, RecvStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// A layer with the time at which all of it was there.
pub(super) type Arrived = (Duration, LayerHeader, Vec<u8>);

/// The receiver of layers, and a count of malformed ones.
#[derive(Clone)]
pub(super) struct Arrivals {
    pub(super) layers: mpsc::Sender<Arrived>,
    pub(super) malformed: Arc<AtomicU32>,
}

impl Arrivals {
    async fn layer(&self, header: LayerHeader, data: Vec<u8>) {
        let _gone = self.layers.send((time_of_day(), header, data)).await;
    }

    fn malformed(&self, what: &dyn std::fmt::Display) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(%what, "what came is no layer");
    }
}

/// Takes streams and datagrams until the connection ends, and tells why it did.
pub(super) async fn take(connection: Connection, arrivals: Arrivals) -> ConnectionError {
    let datagrams = tokio::spawn(assemble(connection.clone(), arrivals.clone()));
    let end = loop {
        match connection.accept_uni().await {
            Ok(stream) => drop(tokio::spawn(read(stream, arrivals.clone()))),
            Err(end) => break end,
        }
    };
    // Datagrams that came before the end are taken, too.
    let _ended = datagrams.await;
    end
}

/// Reads a layer. One that is taken back, or is none, is nothing.
async fn read(mut stream: RecvStream, arrivals: Arrivals) {
    let Ok(message) = stream.read_to_end(LARGEST).await else { return };
    match LayerHeader::decode(&message) {
        Ok((header, data)) if !data.is_empty() => arrivals.layer(header, data.to_vec()).await,
        Ok(_) => arrivals.malformed(&"a layer without bytes"),
        Err(error) => arrivals.malformed(&error),
    }
}

/// Puts layers together from datagrams.
async fn assemble(connection: Connection, arrivals: Arrivals) {
    let mut reassembly = Reassembly::default();
    while let Ok(datagram) = connection.read_datagram().await {
        match reassembly.push(&datagram) {
            Ok(Some((header, data))) => arrivals.layer(header, data).await,
            Ok(None) => {}
            Err(error) => arrivals.malformed(&error),
        }
    }
}
