//! `hvq video send` and `hvq video receive`, alone and with `hvq emulate` between them.

use crate::support::{Running, code, json, run, said};
use hvq_video::picture::test_picture;
use hvq_video::ssim::ssim;
use hvq_video::y4m::Reader;
use serde_json::Value;
use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// A receiver of one video that says where it listens and, at the end, what came of it.
const RECEIVE: [&str; 4] = ["video", "receive", "--json", "--once"];
const LISTEN: [&str; 2] = ["--listen", "127.0.0.1:0"];
const SMALL: [&str; 6] = ["--size", "320x180", "--kbit", "100,400,800", "--duration", "3s"];

/// Returns the figures that a receiver prints at its end, which is to be a good one.
fn figures(receiver: Running) -> Value {
    let (exit, rest) = receiver.wait();
    assert_eq!(exit, 0, "{rest}");
    serde_json::from_str(rest.trim()).unwrap()
}

#[test]
fn a_video_arrives_with_all_layers_and_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("video.y4m");
    let receiver =
        Running::start(RECEIVE.into_iter().chain(LISTEN).chain(["--record", record.to_str().unwrap()]));
    let to = receiver.address(0).to_string();
    let output = run(["video", "send", "test", "--json", "--to", &to].into_iter().chain(SMALL));
    assert_eq!(code(&output), 0, "{}", said(&output));
    let sent = json(&output);
    let count = |figures: &Value, name: &str| figures[name].as_u64().unwrap();
    // A busy machine encodes late: pictures are left out, and late layers are taken back.
    assert!(count(&sent, "frames") + count(&sent, "left_out") >= 90, "{sent}");
    let figures = figures(receiver);
    let frames = count(&figures, "frames");
    assert!(frames * 3 >= count(&sent, "frames") * 2, "{sent} {figures}");
    assert!(figures["depths"][2].as_u64().unwrap() * 9 >= count(&sent, "frames"), "{sent} {figures}");
    let latency = figures["latency"]["p50_ms"].as_f64().unwrap();
    assert!((60.0..1500.0).contains(&latency), "{figures}");
    let video = fs::read(&record).unwrap();
    assert!(video.starts_with(b"YUV4MPEG2 W320 H180"));
    assert!(video.len() as u64 > frames / 2 * (320 * 180 * 3 / 2), "{}", video.len());
}

#[test]
fn over_two_emulated_channels_base_layers_take_the_quick_one() {
    let channels = ["urllc=127.0.0.1:0,rate=2mbit,delay=2.5ms", "embb=127.0.0.2:0"];
    let receiver = Running::start(RECEIVE.into_iter().chain([
        "--wait",
        "adaptive",
        "--channel",
        channels[0],
        "--channel",
        channels[1],
    ]));
    let emulate =
        |name: &str, index, spec: &str| format!("{name}:127.0.0.1:0={},{spec}", receiver.address(index));
    let relays = Running::start([
        "emulate",
        "--json",
        "--duration",
        "12s",
        "--channel",
        &emulate("urllc", 0, "urllc"),
        "--channel",
        &emulate("embb", 1, "rtt=80ms,rate=60mbit"),
    ]);
    let path = |index: usize, hints: &str| {
        let relay = &relays.ready["listening"][index];
        format!(
            "{}=127.0.0.1:0>{}{hints}",
            relay["name"].as_str().unwrap(),
            relay["listen"].as_str().unwrap()
        )
    };
    let (quick, wide) = (path(0, ",rate=2mbit,delay=2.5ms"), path(1, ""));
    let output =
        run(["video", "send", "test", "--json", "--path", &quick, "--path", &wide].into_iter().chain(SMALL));
    assert_eq!(code(&output), 0, "{}", said(&output));
    let figures = figures(receiver);
    let flight = |layer: usize| figures["layers"][layer]["p50_ms"].as_f64().unwrap();
    // 40 ms over eMBB, 2.5 ms over URLLC; the machine is slow, the order is not.
    assert!(flight(0) < flight(2), "{figures}");
    let sent = json(&output);
    for path in sent["paths"].as_array().unwrap() {
        assert!(path["bytes_sent"].as_u64().unwrap() > 10_000, "{sent}");
    }
}

#[test]
fn what_is_wrong_is_said_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.mp4");
    fs::write(&text, "no video").unwrap();
    let output = run(["video", "send", "/nonexistent.mp4", "--to", "127.0.0.1:9"]);
    assert!(code(&output) == 2 && said(&output).contains("/nonexistent.mp4"), "{}", said(&output));
    let output = run(["video", "send", text.to_str().unwrap(), "--to", "127.0.0.1:9"]);
    assert!(code(&output) == 2 && said(&output).contains("ffmpeg"), "{}", said(&output));
    let output = run(["video", "send", "test"]);
    assert!(code(&output) == 2 && said(&output).contains("--to"), "{}", said(&output));
}

#[test]
fn a_recording_that_cannot_be_made_ends_the_video() {
    for name in ["/nonexistent/video.y4m", "/nonexistent/video.mp4", "/"] {
        let output = run(["video", "receive", "--listen", "127.0.0.1:0", "--record", name]);
        assert!(code(&output) == 2 && said(&output).contains(name), "{}", said(&output));
    }
    // FFmpeg alone knows formats, and is asked before a video comes.
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("video.unknown");
    let output = run(["video", "receive", "--listen", "127.0.0.1:0", "--record", record.to_str().unwrap()]);
    assert!(code(&output) == 2 && said(&output).contains("cannot record to"), "{}", said(&output));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{}", said(&output));
}

#[test]
fn each_video_has_a_recording_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("video.y4m");
    let receiver = Running::start(
        ["video", "receive", "--json"]
            .into_iter()
            .chain(LISTEN)
            .chain(["--record", record.to_str().unwrap()]),
    );
    let to = receiver.address(0).to_string();
    for (size, header) in [("64x48", &b"YUV4MPEG2 W64 H48 "[..]), ("96x64", b"YUV4MPEG2 W96 H64 ")] {
        let output = run(["video", "send", "test", "--to", &to, "--size", size, "--duration", "500ms"]);
        assert_eq!(code(&output), 0, "{}", said(&output));
        let name = if size == "64x48" { "video.y4m" } else { "video-2.y4m" };
        let start = std::time::Instant::now();
        while !fs::read(folder.path().join(name)).is_ok_and(|video| video.starts_with(header)) {
            assert!(start.elapsed() < std::time::Duration::from_secs(20), "there is no {name}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    assert!(fs::read(&record).unwrap().starts_with(b"YUV4MPEG2 W64 H48 "));
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_ends_the_video() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("video.y4m");
    std::os::unix::fs::symlink("/dev/full", &record).unwrap();
    let receiver =
        Running::start(RECEIVE.into_iter().chain(LISTEN).chain(["--record", record.to_str().unwrap()]));
    let to = receiver.address(0).to_string();
    let output =
        run(["video", "send", "test", "--json", "--to", &to, "--size", "320x180", "--duration", "30s"]);
    assert!(code(&output) == 3 && said(&output).contains("the receiver failed"), "{}", said(&output));
    assert!(json(&output)["frames"].as_u64().unwrap() < 600, "{}", said(&output));
    assert_eq!(receiver.wait().0, 1);
}

#[test]
fn a_sender_or_receiver_that_vanishes_is_noticed() {
    let receiver = Running::start(RECEIVE.into_iter().chain(LISTEN));
    let to = receiver.address(0).to_string();
    let sender = std::thread::spawn(move || {
        run(["video", "send", "test", "--json", "--to", &to, "--size", "64x48", "--duration", "20s"])
    });
    std::thread::sleep(std::time::Duration::from_secs(2));
    drop(receiver);
    let output = sender.join().unwrap();
    assert!([3, 28].contains(&code(&output)), "{}", said(&output));
    assert!(said(&output).contains("the receiver is gone"), "{}", said(&output));
}

#[test]
fn layers_in_datagrams_make_the_same_video() {
    let receiver = Running::start(RECEIVE.into_iter().chain(LISTEN));
    let to = receiver.address(0).to_string();
    let output =
        run(["video", "send", "test", "--json", "--datagrams", "--to", &to].into_iter().chain(SMALL));
    assert_eq!(code(&output), 0, "{}", said(&output));
    let sent = json(&output)["frames"].as_u64().unwrap();
    let figures = figures(receiver);
    assert!(figures["frames"].as_u64().unwrap() * 3 >= sent * 2, "{sent} {figures}");
    assert!(figures["depths"][2].as_u64().unwrap() * 9 >= sent, "{sent} {figures}");
    assert_eq!(figures["malformed"], 0, "{figures}");
}

/// FFmpeg, which plays what `sdp` says and writes the first pictures to `video`.
fn ffmpeg(sdp: &Path, video: &Path) -> Child {
    let mut command = Command::new("ffmpeg");
    command.args("-v error -nostdin -y -protocol_whitelist file,udp,rtp -c:v libvpx-vp9".split(' '));
    command.arg("-i").arg(sdp).args("-vsync passthrough -frames:v 20 -pix_fmt yuv420p".split(' ')).arg(video);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Returns an even port that is free, with the odd one after it (RFC 3550, §11). It is below those that the system gives to whoever
/// asks for any, so that no other test gets it meanwhile.
fn rtp_port() -> u16 {
    static DRAWN: AtomicU16 = AtomicU16::new(0);
    let own = (std::process::id() % 5_000) as u16;
    let ports =
        std::iter::repeat_with(|| 20_000 + 2 * ((own + DRAWN.fetch_add(1, Ordering::Relaxed)) % 5_000));
    let is_free =
        |port: &u16| [*port, port + 1].iter().all(|port| UdpSocket::bind(("127.0.0.1", *port)).is_ok());
    ports.take(100).find(is_free).expect("a pair of ports is free")
}

/// Sends a video as RTP over QUIC to a receiver that hands it to FFmpeg, and compares what FFmpeg decodes with the source.
fn plays_in_ffmpeg(more: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let (sdp, video) = (folder.path().join("video.sdp"), folder.path().join("video.y4m"));
    let out = format!("udp:127.0.0.1:{}", rtp_port());
    let receiver = Running::start(RECEIVE.into_iter().chain(LISTEN).chain([
        "--rtp-out",
        &out,
        "--sdp",
        sdp.to_str().unwrap(),
    ]));
    let mut player = ffmpeg(&sdp, &video);
    // It has to listen before the first picture comes, the only one that refers to no other.
    std::thread::sleep(Duration::from_secs(2));
    let to = receiver.address(0).to_string();
    let sender = ["video", "send", "test", "--json", "--rtp", "--fixed", "--to", &to, "--size", "320x180"];
    let rest = ["--kbit", "100,400,800", "--duration", "8s"];
    let output = run(sender.into_iter().chain(rest).chain(more.iter().copied()));
    assert_eq!(code(&output), 0, "{}", said(&output));
    let figures = figures(receiver);
    assert!(figures["rtp"]["packets"].as_u64().unwrap() >= 200, "{figures}");
    assert_eq!(figures["rtp"]["refused"], 0, "{figures}");
    let begun = Instant::now();
    while player.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(20), "FFmpeg waits for pictures");
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut complaint = String::new();
    player.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
    let file = fs::File::open(&video).unwrap_or_else(|error| panic!("{error}: {complaint}"));
    let mut pictures = Reader::new(BufReader::new(file)).unwrap();
    let mut next = || pictures.read().unwrap_or_else(|error| panic!("{error}: {complaint}"));
    let like = |number: u32, picture: &_| ssim(&test_picture(320, 180, number), picture).unwrap();
    // FFmpeg may begin a few pictures late, and a sender leaves some out on a busy machine; what FFmpeg decodes is what was
    // sent, one after another, with all layers.
    let mut number = 0;
    for _ in 0..20 {
        let picture = next().unwrap_or_else(|| panic!("after {number} pictures are missing: {complaint}"));
        let found = (number..number + 20).find(|number| like(*number, &picture) > 0.7);
        number = 1 + found.unwrap_or_else(|| panic!("no picture from {number} on is like it: {complaint}"));
    }
}

#[test]
fn rtp_over_quic_in_streams_plays_in_ffmpeg() {
    plays_in_ffmpeg(&[]);
}

#[test]
fn rtp_over_quic_in_datagrams_plays_in_ffmpeg() {
    plays_in_ffmpeg(&["--datagrams"]);
}

#[test]
fn a_page_shows_the_picture_and_its_figures() {
    let receiver = Running::start(RECEIVE.into_iter().chain(LISTEN).chain(["--page", "127.0.0.1:0"]));
    let page = receiver.ready["page"].as_str().unwrap().to_owned();
    let to = receiver.address(0).to_string();
    let sender = std::thread::spawn(move || {
        run(["video", "send", "test", "--json", "--to", &to].into_iter().chain(SMALL))
    });
    let get = |path: &str, wanted: &[u8]| {
        let mut stream = TcpStream::connect(&page).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut bytes = Vec::new();
        while !bytes.windows(wanted.len()).any(|part| part == wanted) {
            let mut part = [0; 4096];
            let read = stream.read(&mut part).unwrap();
            assert!(read > 0, "{path}: {}", String::from_utf8_lossy(&bytes));
            bytes.extend_from_slice(&part[..read]);
        }
    };
    get("/", b"EventSource");
    get("/figures", b"\"freezes\"");
    // A JPEG file begins with these bytes.
    get("/picture", b"Content-Type: image/jpeg\r\n");
    get("/picture", &[0xff, 0xd8, 0xff]);
    let output = sender.join().unwrap();
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert_eq!(receiver.wait().0, 0);
}

#[test]
fn a_receiver_of_rtp_and_a_sender_of_layers_do_not_connect() {
    let receiver = Running::start([
        "video",
        "receive",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--rtp-out",
        "udp:127.0.0.1:9",
    ]);
    let to = receiver.address(0).to_string();
    let output = run(["video", "send", "test", "--json", "--to", &to].into_iter().chain(SMALL));
    // RFC 9001, §8.1: no_application_protocol.
    assert!(
        code(&output) != 0 && said(&output).contains("cannot connect to the receiver"),
        "{}",
        said(&output)
    );
    let output = run(["video", "receive", "--rtp-out", "tcp:1"]);
    assert!(code(&output) == 2 && said(&output).contains("udp:127.0.0.1:5004"), "{}", said(&output));
}

#[test]
fn a_recording_is_compared_with_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let video = folder.path().join("grey.y4m");
    let mut file = b"YUV4MPEG2 W64 H48 F30:1 C420\n".to_vec();
    (0..3).for_each(|_| file.extend([&b"FRAME\n"[..], &[128; 64 * 48 * 3 / 2]].concat()));
    fs::write(&video, file).unwrap();
    let video = video.to_str().unwrap();
    let of = |source: &str| json(&run(["video", "compare", video, source, "--json"]));
    assert_eq!((of(video)["pictures"].as_u64(), of(video)["ssim"].as_f64()), (Some(3), Some(1.0)));
    assert!(of("test")["ssim"].as_f64().unwrap() < 0.5);
    let output = run(["video", "compare", "/nonexistent.y4m", "test"]);
    assert!(code(&output) == 2 && said(&output).contains("/nonexistent.y4m"), "{}", said(&output));
}

/// An executable file with this text.
#[cfg(unix)]
fn program(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(unix)]
#[test]
fn vmaf_is_what_the_named_ffmpeg_says_and_one_without_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let video = folder.path().join("grey.y4m");
    let picture = [&b"YUV4MPEG2 W64 H48 F30:1 C420\nFRAME\n"[..], &[128; 64 * 48 * 3 / 2]].concat();
    fs::write(&video, picture).unwrap();
    let video = video.to_str().unwrap();
    let with = folder.path().join("with");
    let score =
        "echo \"$@\" | grep -q 'libvmaf=shortest=1' && echo '[libvmaf @ 0x1] VMAF score: 87.25' >&2\n";
    program(&with, &format!("#!/bin/sh\n{score}"));
    let compare = |source: &str, ffmpeg: &Path| {
        run(["video", "compare", video, source, "--json", "--vmaf", "--ffmpeg", ffmpeg.to_str().unwrap()])
    };
    assert_eq!(json(&compare(video, &with))["vmaf"].as_f64(), Some(87.25));
    let without = folder.path().join("without");
    program(&without, "#!/bin/sh\necho \"No such filter: 'libvmaf'\" >&2\nexit 1\n");
    let output = compare(video, &without);
    assert!(code(&output) == 2 && said(&output).contains("without libvmaf"), "{}", said(&output));
    let output = compare(video, &folder.path().join("nowhere"));
    assert!(code(&output) == 2 && said(&output).contains("--ffmpeg"), "{}", said(&output));
    let output = compare("test", &with);
    assert!(code(&output) == 2 && said(&output).contains("a file is needed"), "{}", said(&output));
    let output = compare("/nonexistent.y4m", &with);
    assert!(code(&output) == 2 && said(&output).contains("/nonexistent.y4m"), "{}", said(&output));
}
