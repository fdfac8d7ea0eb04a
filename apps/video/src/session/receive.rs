//! Receiving: layers are collected until their frames are due, decoded, and recorded or shown.

mod arrivals;
mod display;
mod figures;
mod forward;
mod overlay;
mod page_server;
mod player;

pub use display::{Destination, Display};
pub use forward::Forwarder;
pub use page_server::PageServer;

use crate::playout::{Adaptive, Gaps, Playout, Wait};
use arrivals::Arrivals;
use figures::Figures;
use hvq::{Connection, ConnectionError, Endpoint};
use hvq_program::failure::{Exit, Failure, exit_of};
use hvq_program::output::{self, Console, ResultFormat};
use hvq_program::paths;
use hvq_program::signals::Signals;
use player::Player;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Layers that wait to be looked at: a sender who floods has to wait.
const QUEUE: usize = 64;
/// Frames that wait for the decoder, which a slow machine may not keep up with.
const BACKLOG: usize = 30;
/// The interval at which a page gets new figures, and the number of frames over which they are taken.
const REFRESH: Duration = Duration::from_millis(250);
const RECENT: usize = 300;
/// The time that a sender may take to notice the end.
const GOODBYE: Duration = Duration::from_millis(500);

/// A receiver of videos.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// The use of the pictures, or of the packets.
    pub output: Output,
    /// The time to wait for layers that make a picture better.
    pub wait: Waiting,
    /// The videos that are received.
    pub videos: Videos,
    /// The format of results on standard output.
    pub format: ResultFormat,
    /// The verbosity.
    pub console: Console,
}

/// The use of what comes.
#[derive(Clone, Debug)]
pub enum Output {
    /// Pictures are decoded and displayed; those who watch the page see them, too.
    Pictures {
        /// The display.
        display: Display,
        /// The page, if there is one.
        page: Option<PageServer>,
    },
    /// RTP goes on to a player.
    Rtp(Arc<Forwarder>),
}

/// The videos that a receiver takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Videos {
    /// One.
    First,
    /// One after another.
    All,
}

/// The waiting time of a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// Always this time.
    Fixed(Duration),
    /// A time that is learnt: waiting goes on while it gains more than it costs.
    Adaptive,
}

impl Waiting {
    fn playout(self) -> Playout {
        let wait = match self {
            Self::Fixed(time) => Wait::Fixed(time),
            Self::Adaptive => Wait::Adaptive(Adaptive::new(Adaptive::MOST)),
        };
        Playout::new(wait, Gaps::Wait)
    }
}

/// The end of a video, if nothing failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ended {
    Complete,
    Interrupted,
}

impl Receiver {
    /// Receives the videos that come to `endpoint`, until a signal says to stop.
    ///
    /// # Errors
    /// The only video to receive ends early ([`exit_of`] says with which exit code), or cannot be shown.
    pub async fn run(&self, endpoint: &Endpoint, signals: &mut Signals) -> Result<(), Failure> {
        let mut videos = 0;
        loop {
            let connection = tokio::select! {
                connection = endpoint.accept() => connection,
                _ = signals.next() => None,
            };
            let Some(connection) = connection else { return Ok(()) };
            let result = match &self.output {
                Output::Rtp(forwarder) => self.forward(forwarder, &connection, signals).await,
                Output::Pictures { display, page } => {
                    let display = display.of_video(videos);
                    videos = videos.saturating_add(1);
                    self.watch(display, page.as_ref(), &connection, signals).await
                }
            };
            match &result {
                Ok(_) => connection.close(0, b"the receiver stopped"),
                Err(_) => connection.close(1, b"the receiver failed"),
            }
            match result {
                Err(failure) if self.videos == Videos::First => {
                    let _late = timeout(GOODBYE, endpoint.wait_idle()).await;
                    return Err(failure);
                }
                Err(failure) => failure.report(),
                Ok(Ended::Interrupted) => {
                    let _late = timeout(GOODBYE, endpoint.wait_idle()).await;
                    return Ok(());
                }
                Ok(Ended::Complete) if self.videos == Videos::First => return Ok(()),
                Ok(Ended::Complete) => {}
            }
        }
    }

    /// Sends RTP on until the sender ends it.
    async fn forward(
        &self,
        forwarder: &Arc<Forwarder>,
        connection: &Connection,
        signals: &mut Signals,
    ) -> Result<Ended, Failure> {
        self.console.say(format!("RTP from {}", connection.remote_address()));
        tokio::select! {
            result = forwarder.run(connection, self.format, self.console) => result.map(|()| Ended::Complete),
            _ = signals.next() => Ok(Ended::Interrupted),
        }
    }

    /// Receives the video of one connection.
    async fn watch(
        &self,
        display: Display,
        server: Option<&PageServer>,
        connection: &Connection,
        signals: &mut Signals,
    ) -> Result<Ended, Failure> {
        self.console.say(format!("a video from {}", connection.remote_address()));
        let (layers, mut arrived) = mpsc::channel(QUEUE);
        let arrivals = Arrivals { layers, malformed: Arc::default() };
        let malformed = arrivals.malformed.clone();
        let accepting = tokio::spawn(arrivals::take(connection.clone(), arrivals));
        let (pending, frames) = mpsc::channel(BACKLOG);
        let pictures = server.cloned();
        let (learnt, learning) = mpsc::unbounded_channel();
        let showing = std::thread::spawn(move || display.show(frames, pictures.as_ref(), &learnt));
        let mut player = Player::new(self.wait.playout(), learning);
        let mut refresh = tokio::time::interval(REFRESH);
        let ended = loop {
            let until = player.until();
            tokio::select! {
                arrival = arrived.recv() => match arrival {
                    Some(arrival) => player.on_layer(arrival),
                    None => break Ended::Complete,
                },
                // Pictures cannot be shown; why is known below.
                () = pending.closed() => break Ended::Complete,
                () = tokio::time::sleep(until.unwrap_or(Duration::MAX)), if until.is_some() => {}
                _ = refresh.tick(), if server.is_some() => tell(server, &player.figures, connection),
                _ = signals.next() => break Ended::Interrupted,
            }
            player.play_due(&pending);
        };
        // What is there at the end is shown, too.
        while let Some(until) = player.until() {
            tokio::time::sleep(until).await;
            player.play_due(&pending);
        }
        drop(pending);
        let shown = tokio::task::spawn_blocking(move || showing.join()).await?;
        let shown = shown.unwrap_or_else(|_| Err(Failure::new(Exit::Runtime, "the decoder failed")));
        let figures = &mut player.figures;
        figures.damaged = shown?;
        figures.malformed = malformed.load(Ordering::Relaxed);
        tell(server, figures, connection);
        self.report(connection, figures)?;
        if ended == Ended::Interrupted {
            accepting.abort();
            return Ok(ended);
        }
        match accepting.await? {
            ConnectionError::PeerApplication { code: 0, .. } => Ok(Ended::Complete),
            end => Err(Failure::new(exit_of(&end), format!("the sender is gone: {end}"))),
        }
    }

    fn report(&self, connection: &Connection, figures: &Figures) -> Result<(), Failure> {
        let paths = paths::figures(connection);
        if self.format == ResultFormat::Json {
            return output::print(&figures.json(&paths).to_string());
        }
        figures.lines().iter().for_each(|line| self.console.say(line));
        paths.iter().for_each(|path| self.console.say(paths::line(path)));
        Ok(())
    }
}

/// Gives a page new figures.
fn tell(server: Option<&PageServer>, figures: &Figures, connection: &Connection) {
    if let Some(server) = server {
        server.tell(figures.latest(RECENT, &paths::figures(connection)).to_string());
    }
}
