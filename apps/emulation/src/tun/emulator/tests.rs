//! The log's lines and the confidence; the emulator itself is tested with real programs by the command line's tests.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::{Count, Direction, DropReason, Summary};

use super::log::{Form, PacketEnd, PacketLog, Record};
use super::{Confidence, Report};
use crate::tun::packet::Header;

fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

/// A disk.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<Vec<u8>>>);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One that is full.
struct FullDisk;

impl Write for FullDisk {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn record(end: PacketEnd) -> Record<'static> {
    let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend([0xd4, 0x31, 0, 53, 0, 8, 0, 0]);
    let header = Header::read(&packet);
    Record { at: ms(1500), direction: Direction::Up, channel: "urllc", size: 28, header, end }
}

fn lines(form: Form) -> Vec<String> {
    let disk = Disk::default();
    let mut log = PacketLog::to(disk.clone(), form).unwrap();
    log.record(record(PacketEnd::Left { delay: ms(3), held: ms(1), lateness: Duration::from_micros(40) }));
    log.record(record(PacketEnd::Dropped(DropReason::Queue)));
    drop(log);
    let text = String::from_utf8(disk.0.lock().unwrap().clone()).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_line_tells_channel_delay_size_and_ends() {
    let json: Vec<serde_json::Value> =
        lines(Form::Json).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(json[0]["channel"], "urllc");
    assert_eq!((json[0]["delay_ms"].as_f64(), json[0]["late_ms"].as_f64()), (Some(3.0), Some(0.04)));
    assert_eq!((&json[0]["protocol"], &json[0]["to"]), (&"udp".into(), &"10.0.0.2:53".into()));
    assert_eq!(json[1]["dropped"], "queue");
    let csv = lines(Form::Csv);
    assert_eq!(csv[1], "1.5,up,urllc,28,3,1,0.04,,udp,10.0.0.1:54321,10.0.0.2:53,,0");
    assert_eq!(csv[2], "1.5,up,urllc,28,,,,queue,udp,10.0.0.1:54321,10.0.0.2:53,,0");
    let columns = |line: &String| line.split(',').count();
    assert!(csv.iter().all(|line| columns(line) == columns(&csv[0])), "{csv:?}");
}

#[test]
fn a_full_disk_costs_lines_and_nothing_else() {
    // Attack J3.
    let mut log = PacketLog::to(FullDisk, Form::Json).unwrap();
    for _ in 0..100_000 {
        log.record(record(PacketEnd::Dropped(DropReason::Queue)));
    }
    let start = std::time::Instant::now();
    while log.unlogged() < 100_000 && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(ms(5));
    }
    assert_eq!(log.unlogged(), 100_000);
}

#[test]
fn a_run_on_a_busy_machine_is_not_to_be_trusted() {
    let report = |p99, max, unread| Report {
        elapsed: ms(1000),
        channels: Vec::new(),
        lateness: Summary { count: 1000, p99, max, ..Summary::default() },
        unsent: Count::default(),
        unlogged: 0,
        unread: Some(unread),
    };
    let fine = report(Duration::from_micros(200), ms(3), 0);
    assert_eq!(fine.confidence(), Confidence::Trusted);
    for (bad, part) in [
        (report(ms(2), ms(3), 0), "1 % of packets left 2.0 ms late"),
        (report(ms(1), ms(30), 0), "a packet left 30.0 ms late"),
        (report(ms(1), ms(3), 7), "7 packets were not read in time"),
    ] {
        let said = bad.confidence().to_string();
        assert!(said.starts_with("NOT") && said.contains(part), "{said}");
    }
}
