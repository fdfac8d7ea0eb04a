//! Tests of `hvc` with prices, losses and copies that hints ask for.

use hvq_scheduler::{Hints, PathId, PerMille, Policy};
use hvq_tests::bulk::Download;
use hvq_tests::net::Net;
use hvq_tests::net::wire::Wire;
use hvq_transport::connection::{ChannelHint, TransportConfig};
use std::sync::Arc;
use std::time::Duration;

/// Long enough for slow start, whose queue is worth a high price, to be little of it.
const TIME: Duration = Duration::from_secs(12);

/// A download over two channels of which both ends know `hints`: the network after it, and Mbit/s.
fn download(policy: Policy, channels: [(&str, Hints); 2]) -> (Net, f64) {
    let told = || {
        let mut config = TransportConfig::new(Arc::new(move || policy.scheduler()));
        config.set_datagram_size(1452.into());
        for (index, (_, hints)) in (0..).zip(channels) {
            let tuple = Wire::addresses(index);
            config.add_channels([tuple.local, tuple.remote].map(|local| ChannelHint::new(local, hints)));
        }
        config
    };
    let mut net = Net::new(told(), told(), 1);
    let tuples = channels.map(|(channel, _)| net.wire(channel));
    net.connect(tuples[0]);
    let mut download = Download::new(Some((tuples[1], channels[1].1)));
    net.run(&mut download, Net::START + TIME);
    let goodput = download.goodput(TIME) / 1e6;
    (net, goodput)
}

fn priced(price: u64) -> Hints {
    Hints { price_per_byte: Some(price), ..Hints::NONE }
}

/// The share of the download that came over the second channel.
fn share_of_second(net: &Net) -> f64 {
    let bytes = [0, 1].map(|index: usize| net.wires[index].down.delivered as f64);
    bytes[1] / (bytes[0] + bytes[1])
}

#[test]
fn a_channel_that_costs_more_is_left_to_what_is_worth_it() {
    let over = |price| {
        let channels = [("rtt=40ms,rate=30mbit", priced(1)), ("rtt=20ms,rate=30mbit", priced(price))];
        let (net, goodput) = download(Policy::Hvc, channels);
        (share_of_second(&net), goodput)
    };
    let ([equal, sum], [dear, alone]) = ([over(1).0, over(1).1], [over(20).0, over(20).1]);
    println!("equal: {equal:.2} of {sum:.1} Mbit/s, dear: {dear:.2} of {alone:.1} Mbit/s");
    assert!(equal > 0.4 && sum > 45.0, "{equal} of {sum}");
    assert!(dear < equal / 4.0 && alone > 24.0, "{dear} of {alone}");
}

/// Returns the numbers of frames of `kind` that the client sent on path 0 and on path 1.
fn sent(net: &mut Net, kind: &str) -> [u64; 2] {
    let stats = net.client.connection().stats();
    let on = |path| {
        let counted = stats.frames.iter().filter(|frame| frame.path == PathId(path) && frame.kind == kind);
        counted.map(|frame| frame.sent).sum()
    };
    [on(0), on(1)]
}

fn lossy() -> [(&'static str, Hints); 2] {
    let hints = Hints { loss: Some(PerMille::new(30)), ..Hints::NONE };
    [("rtt=20ms,rate=30mbit,loss=3%", hints), ("rtt=60ms,rate=30mbit", Hints::NONE)]
}

#[test]
fn control_frames_take_the_reliable_channel() {
    let (mut net, _) = download(Policy::Hvc, lossy());
    let [lossy, reliable] = sent(&mut net, "max_data");
    println!("{lossy} on the lossy channel, {reliable} on the reliable one");
    assert!(reliable >= 3 && lossy <= reliable / 4, "{lossy} and {reliable}");
}

#[test]
fn control_frames_take_both_channels_if_copies_are_asked_for() {
    let (mut net, _) = download(Policy::HvcDuplicate, lossy());
    let [lossy, reliable] = sent(&mut net, "max_data");
    println!("{lossy} on the lossy channel, {reliable} on the reliable one");
    assert!(reliable >= 3 && lossy >= reliable / 2, "{lossy} and {reliable}");
}
