//! A connection of a client.

use super::subflows::Subflows;
use crate::loads::{Acknowledged, BLOCK, ENDLESS, Line, REQUEST};
use anyhow::{Context, Result, ensure};
use hvq::links::Links;
use socket2::{SockAddr, Socket};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::spawn_local;

/// The time that a handshake may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Messages that wait to be written: those of twenty seconds.
const WAITING: usize = 1_000;

/// A connection with its subflows.
pub struct MptcpLine {
    remote: SocketAddr,
    links: Links,
    messages: Sender<Vec<u8>>,
    receive: Mutex<Option<OwnedReadHalf>>,
    subflows: RefCell<Subflows>,
}

impl MptcpLine {
    /// Connects `socket` to `remote`; the kernel adds the subflows.
    pub fn connect(socket: Socket, remote: SocketAddr, links: &Links) -> Result<Self> {
        socket.connect_timeout(&SockAddr::from(remote), PATIENCE)?;
        socket.set_tcp_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let (receive, mut send) = TcpStream::from_std(socket.into())?.into_split();
        let (messages, mut waiting) = channel::<Vec<u8>>(WAITING);
        spawn_local(async move {
            while let Some(message) = waiting.recv().await {
                if send.write_all(&message).await.is_err() {
                    return;
                }
            }
        });
        let receive = Mutex::new(Some(receive));
        Ok(Self {
            remote,
            links: links.clone(),
            messages,
            receive,
            subflows: RefCell::new(Subflows::open()?),
        })
    }
}

impl Line for MptcpLine {
    type Download = OwnedReadHalf;

    async fn ask(&self, request: &[u8]) -> Result<usize> {
        self.messages.send(request.to_vec()).await?;
        let mut answer = [0; REQUEST];
        let mut receive = self.receive.lock().await;
        receive.as_mut().context("the connection downloads")?.read_exact(&mut answer).await?;
        Ok(answer.len())
    }

    async fn begin(&self) -> Result<OwnedReadHalf> {
        self.messages.send(vec![ENDLESS]).await?;
        self.receive.lock().await.take().context("the connection downloads already")
    }

    async fn read(download: &mut OwnedReadHalf) -> Result<usize> {
        Ok(download.read(&mut [0; BLOCK]).await?)
    }

    fn send(&self, datagram: &[u8]) {
        let Ok(length) = u16::try_from(datagram.len()) else { return };
        // One that there is no room for is lost, as datagrams of the others are.
        let _sent = self.messages.try_send([&length.to_be_bytes(), datagram].concat());
    }

    async fn receive(&self) -> Result<()> {
        let mut receive = self.receive.lock().await;
        let receive = receive.as_mut().context("the connection downloads")?;
        let length = usize::from(receive.read_u16().await?);
        ensure!(length == REQUEST, "a message of {length} bytes");
        receive.read_exact(&mut [0; REQUEST]).await?;
        Ok(())
    }

    fn acknowledged(&self) -> Vec<Acknowledged> {
        let links = self.links.current();
        // What cannot be read now can be read the next time.
        let subflows = self.subflows.borrow_mut().of(|_, remote| remote == self.remote).unwrap_or_default();
        let known = subflows.into_iter().filter_map(|subflow| {
            let link = links.iter().find(|link| link.has(subflow.local.ip()))?.name.clone();
            Some(Acknowledged { path: subflow.local.to_string(), link, mark: subflow.acknowledged.into() })
        });
        known.collect()
    }
}
