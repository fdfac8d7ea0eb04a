//! The client, with a connection for each load.

use super::line::{End, QuicheLine};
use super::{Ids, config, text};
use crate::arguments::Arguments;
use crate::loads;
use crate::news;
use crate::record::Record;
use anyhow::{Context, Result};
use hvq::links::Links;
use quiche::ConnectionId;

/// Plays the loads until it is given up.
pub async fn play(arguments: &Arguments, record: &Record) -> Result<()> {
    let remote = arguments.server;
    let mut links = Links::watch().await?;
    let ways = news::ways(&links.current(), remote.ip());
    let first = ways.first().context("no link leads to the server")?;
    let mut config = config()?;
    config.load_verify_locations_from_file(text(&arguments.chain)?)?;
    config.verify_peer(true);
    let mut lines = Vec::new();
    for _ in 0..3 {
        let (end, mut ids) = (End::open(first)?, Ids::default());
        let id = ids.next();
        let name = Some(arguments.name.as_str());
        let connection =
            quiche::connect(name, &ConnectionId::from_ref(&id), end.local(), remote, &mut config)?;
        lines.push(QuicheLine::establish(connection, remote, (ids, end)).await?);
    }
    let lines = <[QuicheLine; 3]>::try_from(lines).ok().context("there are three connections")?;
    let followers = lines.clone();
    let following = async {
        loop {
            let links = links.changed().await;
            let ways = news::ways(&links, remote.ip());
            followers.iter().for_each(|line| line.follow(&ways));
        }
    };
    tokio::select! {
        played = loads::play(lines, record) => played,
        () = following => Ok(()),
    }
}
