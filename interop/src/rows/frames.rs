//! All frames of the multipath extension (RFC 10069 §4) with noq: while content is exchanged, both ends advise how to use
//! a path, change its connection IDs and run out of them, want more paths than are permitted, and give one up for another.
//!
//! The first path is slow and clears ECN marks; the others are neither. Frames about a new path that go over the first
//! one arrive after the first packets of the new path, and acknowledgements are needed with ECN counts and without.

use super::multipath::{self, ALPN, POLICY, SECOND};
use crate::identity::Identity;
use crate::relay::Relay;
use crate::report::Exchange;
use crate::tally::{KINDS, Tally, Way, until};
use crate::{ours, peer};
use anyhow::{Context, Result, ensure};
use hvq::path::Status;
use hvq::transport::wire::frame::types;
use hvq::{Connection, Endpoint, LocalAddress, Multipath, PathId, PathOptions, TransportConfig};
use noq::{PathError, PathStatus, VarInt};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The delay of the first path each way.
const DELAY: Duration = Duration::from_millis(50);
/// The number of attempts to have noq see a path before connection IDs for it, and the time in which it says so.
const ATTEMPTS: usize = 8;
const SOON: Duration = Duration::from_secs(1);
/// Paths that the server permits at a time, and those that the client does.
const FEW: u32 = 2;
const MORE: u32 = 4;
/// One address more of the same host.
const THIRD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);
/// Only clients open paths (RFC 10069 §3.1), so that no server is ever kept from it.
const OF_CLIENTS: &str = "PATHS_BLOCKED";

/// Both ends of a connection, and what hvq's exchanged.
struct Ends {
    near: Connection,
    far: noq::Connection,
    tally: Tally,
}

/// Our client wants more paths than a noq server permits.
pub async fn client(identity: &Identity) -> Result<Exchange> {
    let tally = Tally::default();
    let server = peer::noq::server(identity, ALPN, FEW)?;
    let address = server.local_addr()?;
    let slow = Relay::slow(address, DELAY).await?;
    let endpoint = Endpoint::client(&[])?;
    let mut config = ours::client(identity, ALPN, POLICY)?;
    prepare(config.transport_mut(), MORE, &tally);
    let (near, far) = multipath::connect(&endpoint, config, slow.address(), &server).await?;
    let ends = Ends { near, far, tally };
    tokio::try_join!(multipath::swap(&ends.near, &ends.far), ends.replace(address))?;
    let note = ends.check(Way::Received).await?;
    ends.near.close(0, b"done");
    let _told = tokio::time::timeout(Duration::from_secs(1), ends.far.closed()).await;
    Ok(Exchange { note, ..multipath::exchanged() })
}

/// A noq client wants more paths than our server permits.
pub async fn server(identity: &Identity) -> Result<Exchange> {
    let tally = Tally::default();
    let mut config = ours::server(identity, ALPN, POLICY)?;
    prepare(config.transport_mut(), FEW, &tally);
    let endpoint = multipath::listen(config)?;
    let bound = endpoint.local_addrs();
    let slow = Relay::slow(bound[0], DELAY).await?;
    let client = peer::noq::client(identity, ALPN, MORE)?;
    let far = multipath::dial(&client, slow.address()).await?;
    // hvq issues connection IDs when the handshake is over for it too, and all that it needs for that is still on its way.
    refused(&far, bound[1], PathError::RemoteCidsExhausted).await?;
    let near = multipath::accept(&endpoint, &far).await?;
    let ends = Ends { near, far, tally };
    tokio::try_join!(multipath::swap(&ends.near, &ends.far), ends.have_replaced(bound[1]))?;
    let note = ends.check(Way::Sent).await?;
    ends.far.close(VarInt::from_u32(0), b"done");
    let _told = tokio::time::timeout(Duration::from_secs(1), ends.near.closed()).await;
    Ok(Exchange { note, ..multipath::exchanged() })
}

/// Has connections permit `paths` paths, and their frames counted.
fn prepare(transport: &mut TransportConfig, paths: u32, tally: &Tally) {
    transport.set_multipath(Multipath::UpTo(PathId(paths - 1)));
    transport.set_tracer(Some(tally.factory()));
}

/// noq cannot open a path to `server` yet, because of this.
async fn refused(far: &noq::Connection, server: SocketAddr, because: PathError) -> Result<()> {
    let result = far.open_path(server, PathStatus::Available).await;
    ensure!(result.as_ref().err() == Some(&because), "noq may open a path too early: {result:?}");
    Ok(())
}

impl Ends {
    /// hvq opens a second path to `server`, then a third one, which has to wait until the second is given up, and so on
    /// until noq saw a path before it had connection IDs for it.
    async fn replace(&self, server: SocketAddr) -> Result<()> {
        let from = |local: Ipv4Addr| PathOptions::new("fast", LocalAddress::Ip(local.into())).to(server);
        // noq counts marks in all its acknowledgements as soon as one arrived on any path.
        self.tally.until(Way::Received, types::PATH_ACK).await?;
        let second = self.near.open_path(from(SECOND)).await.context("hvq opens the second path")?;
        self.use_well(second).await?;
        let mut last = second;
        for local in [THIRD, SECOND].into_iter().cycle().take(ATTEMPTS) {
            let next = async { self.near.open_path(from(local)).await.context("hvq opens the next path") };
            let give_up = async {
                self.told(types::PATHS_BLOCKED, || ()).await?;
                self.near.abandon_path(last, 0).context("hvq gives the path before up")
            };
            (last, ()) = tokio::try_join!(next, give_up)?;
            // noq lacks no connection IDs if the first packet was lost, or if hvq had to wait for noq's.
            let blocked = self.tally.until(Way::Received, types::PATH_CIDS_BLOCKED);
            if tokio::time::timeout(SOON, blocked).await.is_ok() {
                break;
            }
        }
        Ok(())
    }

    /// noq opens a second path to `server`, and gives it up for a third one, for which it asks too early.
    async fn have_replaced(&self, server: SocketAddr) -> Result<()> {
        // As above.
        self.tally.until(Way::Received, types::PATH_ACK).await?;
        let second = multipath::open(&self.far, server).await?;
        self.use_well(PathId(1)).await?;
        refused(&self.far, server, PathError::MaxPathIdReached).await?;
        self.tally.until(Way::Received, types::PATHS_BLOCKED).await?;
        second.close().context("noq gives the second path up")?;
        let permitted = || (self.far.stats().frame_rx.max_path_id > 0).then_some(());
        until(permitted).await.context("noq may open no third path")?;
        multipath::open(&self.far, server).await?;
        Ok(())
    }

    /// Both ends advise how to use `path`, and change its connection IDs; hvq takes new ones until it has no more.
    async fn use_well(&self, path: PathId) -> Result<()> {
        let theirs = until(|| self.far.path(path.0.into())).await.context("noq has no such path")?;
        for (status, the_same, frame_type) in [
            (Status::Backup, PathStatus::Backup, types::PATH_STATUS_BACKUP),
            (Status::Available, PathStatus::Available, types::PATH_STATUS_AVAILABLE),
        ] {
            self.near.set_path_status(path, status).context("hvq advises")?;
            theirs.set_status(the_same).context("noq advises")?;
            self.told(frame_type, || ()).await?;
            self.tally.until(Way::Received, frame_type).await?;
        }
        let rotate = || self.near.rotate_connection_id(path).ok();
        until(rotate).await.context("hvq changes noq's connection ID")?;
        self.told(types::PATH_CIDS_BLOCKED, || while rotate().is_some() {}).await?;
        self.near.retire_connection_ids(path).context("hvq has noq change the connection ID")?;
        self.tally.until(Way::Received, types::PATH_RETIRE_CONNECTION_ID).await
    }

    /// Waits until noq counts a frame of this type from hvq, while what it says is made `so`: hvq does not repeat a lost one
    /// that no longer holds.
    async fn told(&self, frame_type: u64, so: impl Fn()) -> Result<()> {
        let is_told = || {
            so();
            let counts = peer::noq::multipath(&self.far.stats().frame_rx);
            counts.iter().any(|(types, count)| types.contains(&frame_type) && *count > 0).then_some(())
        };
        until(is_told).await.with_context(|| format!("noq was not told with frame {frame_type:#x}"))
    }

    /// Checks that frames of all kinds went both ways, but PATHS_BLOCKED not `from_server`, and that noq counted them
    /// too; returns what there is to say about it.
    async fn check(&self, from_server: Way) -> Result<String> {
        for way in [Way::Sent, Way::Received] {
            let wanted = |(_, name): &&(u64, &str)| way != from_server || *name != OF_CLIENTS;
            for (frame_type, _) in KINDS.iter().filter(wanted) {
                self.tally.until(way, *frame_type).await?;
            }
        }
        ensure!(self.tally.missing(from_server) == [OF_CLIENTS], "a server was kept from opening paths");
        until(|| self.is_counted_by_noq().then_some(())).await.with_context(|| {
            let stats = self.far.stats();
            format!("noq counts others: sent {:?}, received {:?}", stats.frame_tx, stats.frame_rx)
        })?;
        let kinds = |way| KINDS.len() - self.tally.missing(way).len();
        let (sent, received) = (kinds(Way::Sent), kinds(Way::Received));
        Ok(format!("sent {sent} kinds, received {received}: no server is {OF_CLIENTS}"))
    }

    /// Returns true if noq received each kind of frame that hvq sent, and the other way round.
    fn is_counted_by_noq(&self) -> bool {
        let stats = self.far.stats();
        [(Way::Sent, stats.frame_rx), (Way::Received, stats.frame_tx)].iter().all(|(way, theirs)| {
            let ours = |types: &[u64]| types.iter().any(|one| self.tally.count(*way, *one) > 0);
            peer::noq::multipath(theirs).iter().all(|(types, count)| ours(types) == (*count > 0))
        })
    }
}
