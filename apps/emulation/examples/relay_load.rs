//! Measures how much a relay carries: `cargo run --release --example relay_load -- [CHANNEL [MBIT [SECONDS]]]`.
//!
//! One thread paces datagrams of 1200 bytes into the relay, another counts what comes out. On Linux the share of one
//! core that the relay's thread used is printed as well.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use hvq_emulation::relay::Relay;
use hvq_emulation::{Bandwidth, ChannelSpec};

const SIZE: usize = 1200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let spec: ChannelSpec = arguments.next().unwrap_or_else(|| "rtt=20ms".to_owned()).parse()?;
    let rate: Bandwidth = format!("{}mbit", arguments.next().unwrap_or_else(|| "200".to_owned())).parse()?;
    let seconds: f64 = arguments.next().unwrap_or_else(|| "5".to_owned()).parse()?;

    let any: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    let sink = UdpSocket::bind(any)?;
    sink.set_read_timeout(Some(Duration::from_secs(1)))?;
    let relay = Relay::start(any, sink.local_addr()?, spec, 1)?;
    let counter = std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        let mut received = 0u64;
        while sink.recv(&mut buffer).is_ok() {
            received += 1;
        }
        received
    });

    let source = UdpSocket::bind(any)?;
    let start = Instant::now();
    let (mut sent, payload) = (0u64, [0; SIZE]);
    while start.elapsed().as_secs_f64() < seconds {
        let due = start.elapsed().as_secs_f64() * rate.bits_per_second() as f64 / (SIZE as f64 * 8.0);
        while sent < due as u64 {
            source.send_to(&payload, relay.local_addr())?;
            sent += 1;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    let used = relay_core_share(start.elapsed());
    let received = counter.join().map_err(|_| "the counting thread panicked")?;
    let statistics = relay.stop();
    let megabits = received as f64 * SIZE as f64 * 8.0 / 1e6 / seconds;
    println!("{megabits:.0} Mbit/s: {sent} sent, {received} received");
    println!(
        "in {:?}, dropped {:?}, unsent {:?}",
        statistics.up.entered,
        statistics.up.dropped_in_all(),
        statistics.unsent
    );
    println!("lateness {:?}", statistics.lateness);
    if let Some(share) = used {
        println!("the relay's thread used {:.0} % of a core", share * 100.0);
    }
    Ok(())
}

/// The share of a core that the thread named `hvq-relay` has used, from `/proc`, whose ticks are 10 ms long.
fn relay_core_share(elapsed: Duration) -> Option<f64> {
    for task in std::fs::read_dir("/proc/self/task").ok()?.flatten() {
        let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
        if !stat.contains("(hvq-relay)") {
            continue;
        }
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
        return Some(ticks / 100.0 / elapsed.as_secs_f64());
    }
    None
}
