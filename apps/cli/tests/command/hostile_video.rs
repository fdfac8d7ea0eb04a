//! Senders of video that send what is no layer, damaged layers and layers in the wrong order, or vanish.

use crate::support::{Running, hvq};
use ::hvq::{ClientConfig, ClientTls, ConnectOptions, Connection, Endpoint, TransportConfig, Verify};
use hvq_scheduler::Policy;
use hvq_video::layers::LAYERS;
use hvq_video::message::{LayerHeader, Reference};
use hvq_video::picture::test_picture;
use hvq_video::vpx::{Encoded, Encoder, Settings};
use serde_json::Value;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const RECEIVE: [&str; 6] = ["video", "receive", "--json", "--once", "--listen", "127.0.0.1:0"];

async fn connect(to: SocketAddr) -> (Endpoint, Connection) {
    let tls = ClientTls::builder().alpn([b"hvq-svc/1"]).verify(Verify::Insecure).build().unwrap();
    let transport = TransportConfig::new(Arc::new(|| Policy::Single(None).scheduler()));
    let endpoint = Endpoint::client(&[]).unwrap();
    let config = ClientConfig::new(tls, Arc::new(transport));
    let connection = endpoint.connect_with(config, ConnectOptions::new(to, "localhost")).unwrap();
    (endpoint, connection.await.unwrap())
}

async fn send(connection: &Connection, message: Vec<u8>) {
    let mut stream = connection.open_uni().await.unwrap();
    stream.write_chunk(message.into()).await.unwrap();
    stream.finish().unwrap();
    let _taken = stream.stopped().await;
}

/// The messages of a frame, its last layer first.
fn messages(frame: u32, encoded: &Encoded) -> Vec<Vec<u8>> {
    let captured = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let message = |layer: usize| {
        let reference = if encoded.fresh.contains(layer) { Reference::Fresh } else { Reference::Earlier };
        let header = LayerHeader { frame, layer, captured, reference };
        [&header.encode()[..], &encoded.layers[layer]].concat()
    };
    (0..LAYERS).rev().map(message).collect()
}

#[tokio::test]
async fn damaged_layers_and_layers_in_the_wrong_order_are_survived_and_counted() {
    let receiver = Running::start(RECEIVE);
    let (endpoint, connection) = connect(receiver.address(0)).await;
    let mut encoder = Encoder::new(Settings::new(320, 180)).unwrap();
    let frames: Vec<Encoded> =
        (0..12).map(|number| encoder.encode(&test_picture(320, 180, number)).unwrap()).collect();
    // Nothing, less than a header, a layer that does not exist, reserved bits, and a layer without bytes.
    for none in [vec![], vec![0x80; 5], vec![3; 40], vec![0x7c; 40], vec![0; LayerHeader::SIZE]] {
        send(&connection, none).await;
    }
    // Each three frames backwards, each layer twice.
    for number in [2, 1, 0, 5, 4, 3, 8, 7, 6, 11, 10, 9] {
        let mut frame = frames[number as usize].clone();
        if number == 5 {
            frame.layers[1] = vec![0xff; 200];
        }
        for message in messages(number, &frame) {
            send(&connection, message.clone()).await;
            send(&connection, message).await;
        }
    }
    connection.close(0, b"the video is over");
    endpoint.wait_idle().await;
    let (exit, rest) = tokio::task::spawn_blocking(|| receiver.wait()).await.unwrap();
    let figures: Value = serde_json::from_str(rest.trim()).unwrap();
    assert_eq!((exit, &figures["frames"], &figures["malformed"]), (0, &12.into(), &5.into()), "{figures}");
    let damaged = figures["damaged"].as_u64().unwrap();
    assert!((1..=7).contains(&damaged), "{figures}");
}

#[test]
fn a_sender_that_vanishes_ends_the_video_with_what_was_seen() {
    let receiver = Running::start(RECEIVE);
    let to = receiver.address(0).to_string();
    let arguments = ["video", "send", "test", "--json", "--size", "64x48", "--duration", "60s", "--to", &to];
    let mut sender = hvq().args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    sender.kill().unwrap();
    sender.wait().unwrap();
    let (exit, rest) = receiver.wait();
    let figures: Value = serde_json::from_str(rest.trim()).unwrap();
    assert!([3, 28].contains(&exit) && figures["frames"].as_u64().unwrap() > 0, "{exit}: {figures}");
}
