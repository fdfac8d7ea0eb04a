//! Endpoints of the kernel's path manager (ip-mptcp(8)): one for each address that leads to the server, gone with it.

use crate::news::Way;
use anyhow::{Context, Result, bail};
use tokio::process::Command;

/// Subflows of a connection, and addresses of the peer, at most: those that the kernel takes.
const MOST: &str = "8";
/// The highest number of an endpoint.
const HIGHEST: u8 = 255;

/// The endpoints of a client.
#[derive(Debug, Default)]
pub struct Endpoints {
    known: Vec<(u8, Way)>,
}

impl Endpoints {
    /// Adds endpoints for the `ways` that have none, from which the kernel begins subflows at once, and deletes those of others,
    /// which ends their subflows.
    pub async fn follow(&mut self, ways: &[Way]) -> Result<()> {
        let (kept, gone) =
            std::mem::take(&mut self.known).into_iter().partition(|(_, way)| ways.contains(way));
        self.known = kept;
        for (number, _) in gone {
            ip(&["endpoint", "delete", "id", &number.to_string()]).await?;
        }
        for way in ways {
            if self.known.iter().any(|(_, known)| known == way) {
                continue;
            }
            let is_free = |number: &u8| self.known.iter().all(|(known, _)| known != number);
            let number = (1..=HIGHEST).find(is_free).context("there are too many endpoints")?;
            let (address, number_text) = (way.address.to_string(), number.to_string());
            ip(&["endpoint", "add", &address, "dev", &way.link, "id", &number_text, "subflow"]).await?;
            self.known.push((number, way.clone()));
        }
        Ok(())
    }
}

/// Permits as many subflows and addresses as the kernel can.
pub async fn permit() -> Result<()> {
    ip(&["limits", "set", "subflows", MOST, "add_addr_accepted", MOST]).await
}

async fn ip(words: &[&str]) -> Result<()> {
    let output = Command::new("ip").arg("mptcp").args(words).output().await.context("cannot run ip")?;
    if output.status.success() {
        return Ok(());
    }
    bail!("ip mptcp {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim())
}
