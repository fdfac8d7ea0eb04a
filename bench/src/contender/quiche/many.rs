//! Many connections on one socket.

use super::lent::{self, Connection};
use super::port::Port;
use super::{client_config, server_config};
use crate::contender::stack::{HANDSHAKES_AT_ONCE, SETTLE, WARM_UP};
use crate::contender::{Account, Line, Material, Task, say};
use crate::meter::{Meter, resident};
use anyhow::{Context, Result};
use nix::poll::PollFlags;
use quiche::{Config, ConnectionId, Error, Header, Type};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Bytes of a connection ID.
const ID: usize = 16;

/// The connections of one side.
struct Hub {
    port: Port,
    config: Config,
    connections: HashMap<[u8; ID], (Connection, SocketAddr)>,
    next: u128,
    established: u32,
    ended: u32,
    meter: Option<Meter>,
    role: Role,
}

/// The side of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Client,
    Server,
}

/// Accepts `count` connections and waits for their end.
pub fn greet(task: &Task, count: u32) -> Result<Account> {
    let mut hub = Hub::new(task, Role::Server)?;
    say(&Line::Listening(vec![hub.port.local]))?;
    while hub.ended < count {
        hub.turn(None)?;
    }
    hub.account()
}

/// Makes `count` connections, a few at a time, and closes each at once.
pub fn shake_hands(task: &Task, to: SocketAddr, count: u32) -> Result<Account> {
    let mut hub = Hub::new(task, Role::Client)?;
    hub.meter = Some(Meter::start()?);
    let mut begun = 0;
    while hub.ended < count {
        while begun < count && begun - hub.ended < HANDSHAKES_AT_ONCE {
            hub.connect(to)?;
            begun += 1;
        }
        hub.turn(None)?;
        hub.close_established()?;
    }
    hub.account()
}

/// Accepts connections, and tells what memory all but the first of them took.
pub fn hold(task: &Task, connections: u32) -> Result<Account> {
    let mut hub = Hub::new(task, Role::Server)?;
    say(&Line::Listening(vec![hub.port.local]))?;
    hub.until_established(WARM_UP)?;
    hub.rest(SETTLE)?;
    let before = resident()?;
    hub.until_established(WARM_UP + connections)?;
    hub.rest(2 * SETTLE)?;
    let mut account = hub.account()?;
    account.resident = resident()?.saturating_sub(before);
    Ok(account)
}

/// Opens connections, tells what memory all but the first of them took, and does nothing with them until the server has measured.
pub fn idle(task: &Task, to: SocketAddr, connections: u32) -> Result<Account> {
    let mut hub = Hub::new(task, Role::Client)?;
    let mut before = 0;
    for (from, count) in [(0, WARM_UP), (WARM_UP, connections)] {
        before = resident()?;
        for index in from..from + count {
            hub.connect(to)?;
            hub.until_established(index + 1)?;
        }
        // The server measures meanwhile, and then this end.
        hub.rest(2 * SETTLE)?;
    }
    let mut account = hub.account()?;
    account.resident = resident()?.saturating_sub(before);
    hub.rest(2 * SETTLE)?;
    Ok(account)
}

impl Hub {
    fn new(task: &Task, role: Role) -> Result<Self> {
        let mut config = match role {
            Role::Client => client_config(&task.material, task.datagram)?,
            Role::Server => server_config(&task.material, task.datagram)?,
        };
        config.set_max_idle_timeout(u64::try_from(task.idle_timeout().as_millis())?);
        Ok(Self {
            port: Port::open(task.datagram)?,
            config,
            connections: HashMap::new(),
            next: 1,
            established: 0,
            ended: 0,
            meter: None,
            role,
        })
    }

    fn account(&self) -> Result<Account> {
        let usage = self.meter.context("there was no connection")?.stop()?;
        Ok(Account { usage, ..Account::default() })
    }

    fn new_id(&mut self) -> [u8; ID] {
        self.next += 1;
        self.next.to_be_bytes()
    }

    fn connect(&mut self, to: SocketAddr) -> Result<()> {
        if self.meter.is_none() {
            self.meter = Some(Meter::start()?);
        }
        let id = self.new_id();
        let (addresses, source) = ([self.port.local, to], ConnectionId::from_ref(&id));
        let mut connection = lent::connect(Material::NAME, &source, addresses, &mut self.config)?;
        self.port.flush(&mut connection, to)?;
        self.connections.insert(id, (connection, to));
        Ok(())
    }

    /// Closes the connections whose handshake is complete.
    fn close_established(&mut self) -> Result<()> {
        let ready = |(id, (connection, _)): (&[u8; ID], &(Connection, SocketAddr))| {
            connection.is_established().then_some(*id)
        };
        let ids: Vec<_> = self.connections.iter().filter_map(ready).collect();
        for id in ids {
            let Some((mut connection, to)) = self.connections.remove(&id) else { continue };
            connection.close(true, 0, b"")?;
            self.port.flush(&mut connection, to)?;
            self.ended += 1;
        }
        Ok(())
    }

    fn until_established(&mut self, count: u32) -> Result<()> {
        while self.established < count {
            self.turn(None)?;
        }
        Ok(())
    }

    fn rest(&mut self, duration: Duration) -> Result<()> {
        let end = Instant::now() + duration;
        while Instant::now() < end {
            self.turn(Some(end))?;
        }
        Ok(())
    }

    /// Waits for input, a timer or `end`, and does what is to be done then.
    fn turn(&mut self, end: Option<Instant>) -> Result<()> {
        let due = self.connections.values().filter_map(|(connection, _)| connection.timeout()).min();
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let timeout = [due, left].into_iter().flatten().min();
        if self.port.wait(PollFlags::POLLIN, timeout)? {
            for id in self.receive()? {
                self.settle(id)?;
            }
            return Ok(());
        }
        let is_due = |connection: &Connection| connection.timeout().is_some_and(|left| left.is_zero());
        let ids: Vec<_> =
            self.connections.iter().filter(|(_, (it, _))| is_due(it)).map(|(id, _)| *id).collect();
        for id in ids {
            if let Some((connection, _)) = self.connections.get_mut(&id) {
                connection.on_timeout();
            }
            self.settle(id)?;
        }
        Ok(())
    }

    /// Gives what arrived to the connections that it is for, and makes those that are new.
    fn receive(&mut self) -> Result<Vec<[u8; ID]>> {
        let mut arrived: Vec<(Vec<u8>, quiche::RecvInfo)> = Vec::new();
        self.port.each(|datagram, info| {
            arrived.push((datagram.to_vec(), info));
            Ok(())
        })?;
        let mut touched = Vec::new();
        for (mut datagram, info) in arrived {
            let Ok(header) = Header::from_slice(&mut datagram, ID) else { continue };
            let mut id = <[u8; ID]>::try_from(header.dcid.as_ref()).unwrap_or_default();
            if !self.connections.contains_key(&id) {
                if header.ty != Type::Initial || self.role == Role::Client {
                    continue;
                }
                id = self.new_id();
                let source = ConnectionId::from_ref(&id);
                let addresses = [self.port.local, info.from];
                let accepted = lent::accept(&source, addresses, &mut self.config)?;
                self.connections.insert(id, (accepted, info.from));
            }
            if self.meter.is_none() {
                self.meter = Some(Meter::start()?);
            }
            let Some((connection, _)) = self.connections.get_mut(&id) else { continue };
            let was_established = connection.is_established();
            match connection.recv(&mut datagram, info) {
                Ok(_) | Err(Error::Done) => {}
                Err(error) => return Err(error.into()),
            }
            self.established += u32::from(!was_established && connection.is_established());
            if !touched.contains(&id) {
                touched.push(id);
            }
        }
        Ok(touched)
    }

    /// Sends what connection `id` has to send, and forgets it if it ended.
    fn settle(&mut self, id: [u8; ID]) -> Result<()> {
        let Some((connection, to)) = self.connections.get_mut(&id) else { return Ok(()) };
        self.port.flush(connection, *to)?;
        if connection.is_closed() || connection.is_draining() {
            self.connections.remove(&id);
            self.ended += 1;
        }
        Ok(())
    }
}
