//! A congestion controller of one's own: it gains a datagram a round trip, and a loss costs it a quarter of its window.
//!
//! `cargo run -p hvq --example own_controller`

use hvq::congestion::simulation::{Bottleneck, DATAGRAM, Simulation};
use hvq::congestion::{
    Congestion, Controller, Instant, LossSample, MarkSample, Persistence, Sample, SpuriousSample, contract,
    initial_window, minimum_window,
};
use hvq::{
    ClientConfig, ClientTls, Endpoint, Identity, PathId, Policy, ServerConfig, ServerTls, TransportConfig,
    Verify,
};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// The controller of one path. All times come with the events.
#[derive(Clone, Debug)]
struct Gentle {
    datagram_size: usize,
    window: usize,
    /// The window at which slow start ends.
    threshold: usize,
    /// Bytes acknowledged towards the next datagram of growth.
    acknowledged: usize,
    /// The time up to which packets that left belong to the last reduction.
    recovery: Option<Instant>,
    /// The last reduction, to take back if its losses were none.
    reduction: Option<Reduction>,
}

#[derive(Clone, Copy, Debug)]
struct Reduction {
    window: usize,
    threshold: usize,
    /// Bytes lost that have not turned up since.
    lost: usize,
}

impl Gentle {
    fn new(datagram_size: usize) -> Self {
        Self {
            datagram_size,
            window: initial_window(datagram_size),
            threshold: usize::MAX,
            acknowledged: 0,
            recovery: None,
            reduction: None,
        }
    }

    /// Losses and marks of one round trip reduce the window once.
    fn reduce(&mut self, sent_at: Instant, now: Instant, lost: usize) {
        if self.recovery.is_some_and(|start| sent_at <= start) {
            if let Some(reduction) = &mut self.reduction {
                reduction.lost = reduction.lost.saturating_add(lost);
            }
            return;
        }
        self.reduction = Some(Reduction { window: self.window, threshold: self.threshold, lost });
        self.recovery = Some(now);
        self.threshold = (self.window / 4 * 3).max(minimum_window(self.datagram_size));
        self.window = self.threshold;
    }
}

impl Controller for Gentle {
    fn on_acknowledged(&mut self, sample: &Sample) {
        // A window that is not used does not grow (RFC 9002 §7.8), nor during recovery (§7.3.2).
        if sample.app_limited || self.recovery.is_some_and(|start| sample.sent_at <= start) {
            return;
        }
        if self.window < self.threshold {
            self.window = self.window.saturating_add(sample.bytes).min(1 << 40);
            return;
        }
        self.acknowledged = self.acknowledged.saturating_add(sample.bytes);
        if self.acknowledged >= self.window {
            self.acknowledged = 0;
            self.window = self.window.saturating_add(self.datagram_size).min(1 << 40);
        }
    }

    fn on_lost(&mut self, sample: &LossSample) {
        self.reduce(sample.largest_sent_at, sample.now, sample.bytes);
        if sample.persistent == Persistence::Persistent {
            self.window = minimum_window(self.datagram_size);
            self.reduction = None;
        }
    }

    fn on_ecn_ce(&mut self, sample: &MarkSample) {
        self.reduce(sample.sent_at, sample.now, 0);
        // Congestion without a loss: there is nothing to take back.
        self.reduction = None;
    }

    fn on_spurious(&mut self, sample: &SpuriousSample) {
        let Some(reduction) = &mut self.reduction else { return };
        reduction.lost = reduction.lost.saturating_sub(sample.bytes);
        if reduction.lost == 0 {
            self.window = self.window.max(reduction.window);
            self.threshold = reduction.threshold;
            (self.recovery, self.reduction) = (None, None);
        }
    }

    fn window(&self) -> usize {
        self.window
    }

    fn name(&self) -> &'static str {
        "gentle"
    }

    fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    fn set_datagram_size(&mut self, datagram_size: usize) {
        self.datagram_size = datagram_size;
        self.window = self.window.max(minimum_window(datagram_size));
    }
}

/// Makes one for each path.
fn gentle(datagram_size: usize) -> Box<dyn Controller> {
    Box::new(Gentle::new(datagram_size))
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    // The contract of all controllers, on paths drawn from seeds: it panics with the clause that is broken.
    for seed in 0..3 {
        contract::check(&gentle, seed);
    }

    // Its use of a bottleneck, in virtual time: 20 Mbit/s, 40 ms and a queue of 60 datagrams.
    let bottleneck = Bottleneck::new(20, Duration::from_millis(40), 60);
    let mut simulation = Simulation::new(bottleneck, gentle(DATAGRAM));
    simulation.until(5.0);
    println!("{:.0} % of a simulated bottleneck", simulation.until(15.0) * 100.0);

    // Connections whose paths are under it.
    let mut transport = TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()));
    transport.set_congestion(Congestion::custom(gentle));
    let (delivered, controller) = download(Arc::new(transport)).await?;
    println!("{delivered} bytes over loopback under {controller}");
    if (delivered, controller) == (1 << 20, "gentle") { Ok(()) } else { Err("another controller".into()) }
}

/// Downloads a mebibyte; returns the bytes that came and the name of the client's controller.
async fn download(transport: Arc<TransportConfig>) -> Result<(usize, &'static str), Box<dyn Error>> {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let (chain, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
    let identity = Identity::Pem { chain: chain.clone().into_bytes(), key: key.into_bytes() };
    let tls = ServerTls::builder(identity).alpn(["example"]).build()?;
    let config = ServerConfig::new(tls, Arc::clone(&transport));
    let server = Endpoint::server(config, &["127.0.0.1:0".parse()?])?;
    let address = server.local_addr()?;
    tokio::spawn(async move {
        while let Some(connection) = server.accept().await {
            while let Ok((mut send, _receive)) = connection.accept_bi().await {
                // The client may have gone meanwhile.
                let _sent = send.write_all(&vec![0; 1 << 20]).await.and_then(|()| send.finish());
            }
        }
    });
    let tls = ClientTls::builder().alpn(["example"]).verify(Verify::CaPem(chain.into_bytes())).build()?;
    let client = Endpoint::client(&[])?;
    let connection = client.connect(ClientConfig::new(tls, transport), address, "localhost")?.await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    send.finish()?;
    let bytes = receive.read_to_end(1 << 21).await?;
    let path = connection.path(PathId::ZERO).ok_or("path 0 is open")?;
    connection.close(0, b"done");
    client.wait_idle().await;
    Ok((bytes.len(), path.stats.controller))
}
