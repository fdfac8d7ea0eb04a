//! IP packets through the gateway (RFC 9484): the tunnel's server, for those who may go through.

use crate::configuration::TunnelConfig;
use crate::gateway::Shared;
use crate::health::Alarm;
use crate::request::{ActiveRequest, Receive};
use crate::tunnel::{Denied, lead, name_of, place};
use crate::virtual_host::{ForwardProxy, VirtualHosts};
use hvq_emulation::tun::device::TunDevice;
use hvq_emulation::tun::namespace::Namespace;
use hvq_emulation::tun::wiring::{self, End};
use hvq_h3::Code;
use hvq_tunnel::server::{
    self, Allotment, Asked, Destinations, FORMER_PROTOCOL, Granted, Meter, PATH, PROTOCOL, Refusal,
};
use hvq_tunnel::{AsyncDevice, Prefix, Server, ServerOptions, TcpLane};
use ipnet::IpNet;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Pieces of a request's stream that wait for the tunnel.
const PIECES: usize = 64;
/// A TCP flow that is silent for less goes on (RFC 5382 §5, REQ-5).
const LEAST_PATIENCE: Duration = Duration::from_secs(124 * 60);

/// The tunnels of a gateway, which end at one TUN device.
pub(crate) struct Tunnels {
    server: Arc<Server>,
    routes: Arc<[IpNet]>,
    carrying: JoinHandle<()>,
}

impl Drop for Tunnels {
    fn drop(&mut self) {
        self.carrying.abort();
    }
}

impl Tunnels {
    /// Makes the device that `config` says, with addresses, and carries its packets. `alarm` ends when that does. Within a tokio
    /// runtime.
    ///
    /// # Errors
    /// The system does not permit it: this takes root, or the capability NET_ADMIN.
    pub(crate) fn start(config: &TunnelConfig, alarm: Alarm) -> io::Result<Self> {
        let here = Namespace::current()?;
        let network = End::far(config.network);
        let device = TunDevice::offloading(&here, &config.device)?;
        wiring::apply(&here, &wiring::addresses(&config.device, network, hvq_tunnel::MTU))?;
        let prefix = |route: &IpNet| Prefix::new(route.network(), route.prefix_len());
        let routes = config.routes.iter().filter_map(prefix).collect();
        let options = ServerOptions::trusting(routes, (network.v4, network.v6));
        let allotment = Allotment { per_client: config.addresses_per_client, rest: config.rest };
        let lane = if config.tcp_lane { TcpLane::On } else { TcpLane::Off };
        let options = options.map_err(io::Error::other)?.with_allotment(allotment).with_tcp_lane(lane);
        let server = Server::new(options, AsyncDevice::new(device)?);
        let carrier = server.clone();
        let carrying = tokio::spawn(async move {
            let _alarm = alarm;
            if let Err(error) = carrier.carry().await {
                tracing::error!(%error, "the device of the tunnels failed");
            }
        });
        Ok(Self { server, routes: config.routes.as_slice().into(), carrying })
    }
}

/// Returns true if a request for `protocol` and `path` with extended CONNECT asks for a tunnel. Clients of before ask
/// by the name of tunnels for UDP, whose paths are others.
pub(crate) fn is_asked(protocol: &str, path: &str) -> bool {
    matches!(protocol, PROTOCOL | FORMER_PROTOCOL) && path.starts_with(PATH)
}

/// Returns the name of the client whose request is `active`, if it may have tunnels, beside what lets it in and what carries its packets.
fn client<'a>(
    active: &mut ActiveRequest,
    virtual_hosts: &'a VirtualHosts,
    gateway: &'a Shared,
) -> Result<(&'a ForwardProxy, &'a Tunnels, String), Denied> {
    let both = virtual_hosts.proxy.as_ref().zip(gateway.tunnels.as_ref());
    let (proxy, tunnels) = both.ok_or(Denied::Closed)?;
    let name = name_of(proxy, &active.peer, active.request.headers()).ok_or(Denied::Unknown)?;
    active.entry.user(Some(name.clone()));
    Ok((proxy, tunnels, name))
}

/// Returns true if a plain CONNECT request is that of a TCP flow of a tunnel.
pub(crate) fn is_flow(active: &ActiveRequest) -> bool {
    server::is_marked(active.request.headers())
}

/// Serves the request of a TCP flow of a tunnel: it leads where packets of the tunnel would.
pub(crate) async fn serve_flow(mut active: Box<ActiveRequest>) {
    let (virtual_hosts, gateway) = (active.virtual_hosts.clone(), active.peer.gateway.clone());
    let (proxy, tunnels, name) = match client(&mut active, &virtual_hosts, &gateway) {
        Ok(client) => client,
        Err(denied) => return active.deny(denied).await,
    };
    let Some(destination) = server::destination(&active.request) else {
        return active.deny(Denied::Nonsense).await;
    };
    let address = destination.ip();
    if !tunnels.server.takes_flows_to(address) || !proxy.reach.allows_by(address, &tunnels.routes) {
        return active.deny(Denied::Destination).await;
    }
    let Some(_place) = place(&mut active, Some(&name)).await else { return };
    let patience = virtual_hosts.timeouts.tunnel.max(LEAST_PATIENCE);
    let connecting = proxy.connector.connect_to(destination);
    lead(active, connecting, patience).await;
}

/// Serves a request for a tunnel.
pub(crate) async fn serve(mut active: Box<ActiveRequest>) {
    let (virtual_hosts, gateway) = (active.virtual_hosts.clone(), active.peer.gateway.clone());
    let (proxy, tunnels, name) = match client(&mut active, &virtual_hosts, &gateway) {
        Ok(client) => client,
        Err(denied) => return active.deny(denied).await,
    };
    let Some(_place) = place(&mut active, Some(&name)).await else { return };
    let Some(receive) = active.receive.take() else { return };
    let peer = active.peer.clone();
    let Some((quic, id)) = active.stream(&peer) else { return };
    // What a new configuration says counts for new tunnels.
    let (reach, routes) = (proxy.reach.clone(), tunnels.routes.clone());
    let asked = Asked {
        fields: active.request.headers(),
        id,
        client: &name,
        destinations: Destinations::new(move |address| reach.allows_by(address, &routes)),
        meter: Meter::default(),
    };
    let granted = match tunnels.server.grant(asked, &quic.connection, &quic.datagrams) {
        Ok(granted) => granted,
        Err(refusal) => {
            let text = match refusal {
                Refusal::Twice => "one tunnel each request",
                Refusal::Full => "no address is free",
                Refusal::Enough => "you have as many tunnels as you may",
            };
            return active.refuse(refusal.status(), text, None).await;
        }
    };
    if let Err(error) = active.reply.head(granted.head()).await {
        return active.note(Err(error));
    }
    let _open = gateway.metrics.tunnel();
    carry(&mut active, receive, granted).await;
}

/// Carries capsules both ways beside the tunnel, until either ends.
async fn carry(active: &mut ActiveRequest, mut receive: Receive, mut granted: Granted<'_>) {
    let (piece, pieces) = mpsc::channel(PIECES);
    let mut capsules = granted.capsules();
    let unwanted = active.gone.clone();
    let tunnel = granted.run(pieces);
    let read = async {
        while let Ok(Some(data)) = poll_fn(|context| receive.poll_data(context)).await {
            if piece.send(data).await.is_err() {
                return;
            }
        }
    };
    let write = async {
        while let Some(capsule) = capsules.recv().await {
            if active.reply.data(capsule).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        ended = tunnel => tracing::debug!(%ended, "a tunnel ended"),
        () = read => {}
        () = write => {}
        () = unwanted.wait() => {}
    }
    receive.stop(Code::H3_NO_ERROR);
    let finished = active.reply.finish().await;
    active.note(finished);
}
