//! The traffic on each channel, by the log of packets that `hvq run` writes.

use serde::{Deserialize, Serialize};

/// The traffic on a channel in one direction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Traffic {
    /// The channel.
    pub channel: String,
    /// `up` or `down`.
    pub way: String,
    /// All packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that begin or end a connection of TCP: SYN, FIN, RST.
    pub handshakes: u64,
    /// Packets of TCP without data.
    pub acknowledgements: u64,
    /// Packets of TCP with data.
    pub data: u64,
    /// Datagrams of UDP, those of a tunnel too.
    pub datagrams: u64,
    /// Packets that were dropped on entry, which no other number counts.
    pub dropped: u64,
}

/// A line of the log.
#[derive(Deserialize)]
struct Line {
    channel: String,
    way: String,
    bytes: u64,
    #[serde(default)]
    dropped: Option<String>,
    #[serde(default)]
    protocol: String,
    #[serde(default)]
    flags: String,
    #[serde(default)]
    payload: u64,
}

/// Returns the sums over the lines of `log`, for each channel and direction in the order of their names. Lines of other
/// kinds of packets (ICMP, which the kernel sends by itself) are left out.
pub fn of(log: &str) -> Vec<Traffic> {
    let mut all: Vec<Traffic> = Vec::new();
    for line in log.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
        if line.protocol == "icmp" {
            continue;
        }
        let same = |traffic: &Traffic| traffic.channel == line.channel && traffic.way == line.way;
        let index = all.iter().position(same).unwrap_or_else(|| {
            all.push(Traffic::none(&line));
            all.len() - 1
        });
        if let Some(traffic) = all.get_mut(index) {
            traffic.add(&line);
        }
    }
    all.sort_by(|one, other| (&one.channel, &other.way).cmp(&(&other.channel, &one.way)));
    all
}

impl Traffic {
    fn none(line: &Line) -> Self {
        Self {
            channel: line.channel.clone(),
            way: line.way.clone(),
            packets: 0,
            bytes: 0,
            handshakes: 0,
            acknowledgements: 0,
            data: 0,
            datagrams: 0,
            dropped: 0,
        }
    }

    fn add(&mut self, line: &Line) {
        if line.dropped.is_some() {
            self.dropped += 1;
            return;
        }
        self.packets += 1;
        self.bytes += line.bytes;
        let kind = match line.protocol.as_str() {
            "tcp" if line.flags.contains(['S', 'F', 'R']) => &mut self.handshakes,
            "tcp" if line.payload == 0 => &mut self.acknowledgements,
            "tcp" => &mut self.data,
            _ => &mut self.datagrams,
        };
        *kind += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_counted_by_channel_direction_and_kind() {
        let log = r#"{"bytes":48,"channel":"urllc","way":"up","protocol":"icmp","flags":"","payload":8}
{"bytes":60,"channel":"urllc","way":"up","protocol":"tcp","flags":"S","payload":0}
{"bytes":52,"channel":"urllc","way":"up","protocol":"tcp","flags":"A","payload":0}
{"bytes":140,"channel":"urllc","way":"up","protocol":"tcp","flags":"AP","payload":88}
{"bytes":1500,"channel":"embb","way":"down","protocol":"tcp","flags":"A","payload":1448}
{"bytes":1500,"channel":"embb","way":"down","dropped":"queue","protocol":"tcp","flags":"A","payload":1448}
{"bytes":61,"channel":"embb","way":"up","protocol":"udp","payload":33}
{"bytes":1200,"channel":"urllc","way":"down"}
not a line
"#;
        let traffic = of(log);
        let ways: Vec<(&str, &str)> = traffic.iter().map(|t| (t.channel.as_str(), t.way.as_str())).collect();
        assert_eq!(ways, [("embb", "up"), ("embb", "down"), ("urllc", "up"), ("urllc", "down")]);
        let [embb_up, embb_down, urllc_up, urllc_down] = traffic.as_slice() else { panic!("{traffic:?}") };
        assert_eq!(
            (embb_up.datagrams, embb_down.data, embb_down.dropped, urllc_down.datagrams),
            (1, 1, 1, 1)
        );
        assert_eq!((urllc_up.handshakes, urllc_up.acknowledgements, urllc_up.data), (1, 1, 1));
        assert_eq!((urllc_up.packets, urllc_up.bytes), (3, 252));
    }
}
