use super::*;
use crate::layers::{Chain, LAYERS, LayerSet};
use crate::message::Reference;
use crate::picture::{Picture, test_picture};
use crate::ssim::ssim;

const WIDTH: usize = 320;
const HEIGHT: usize = 180;

fn settings(period: u32) -> Settings {
    let kilobits = [100, 500, 1200];
    Settings { kilobits, references: References { period }, ..Settings::new(WIDTH, HEIGHT) }
}

fn like(one: &Picture, other: &Picture) -> f64 {
    ssim(one, other).expect("they are of one size")
}

/// Encodes 40 pictures and decodes, of each, the layers that `keep` leaves and `Chain` lets through; the mean SSIM.
fn quality(period: u32, keep: impl Fn(u32) -> LayerSet, chained: Chained) -> f64 {
    let mut encoder = Encoder::new(settings(period)).expect("libvpx takes these settings");
    let mut decoder = Decoder::new().expect("libvpx has a decoder");
    let (mut chain, mut sum) = (Chain::default(), 0.0);
    for number in 0..40 {
        let picture = test_picture(WIDTH, HEIGHT, number);
        let encoded = encoder.encode(&picture).expect("a picture of the right size");
        let depth = match chained {
            Chained::Yes => {
                arrive(&mut chain, number, keep(number), encoded.fresh);
                chain.show(number);
                chain.depth(number)
            }
            Chained::No => keep(number).depth(),
        };
        let layers: Vec<&[u8]> = encoded.layers[..depth].iter().map(Vec::as_slice).collect();
        sum += like(&picture, &decoder.decode(&layers).expect("layers without a gap"));
    }
    sum / 40.0
}

/// The layers `present` of a frame are there, of which `fresh` begin anew.
fn arrive(chain: &mut Chain, frame: u32, present: LayerSet, fresh: LayerSet) {
    for layer in (1..LAYERS).filter(|layer| present.contains(*layer)) {
        let reference = if fresh.contains(layer) { Reference::Fresh } else { Reference::Earlier };
        chain.arrive(frame, layer, reference);
    }
}

/// Tells whether layers that refer to something missing are left out.
#[derive(Clone, Copy)]
enum Chained {
    Yes,
    No,
}

fn up_to(depth: usize) -> impl Fn(u32) -> LayerSet {
    move |_| (0..depth).fold(LayerSet::NONE, LayerSet::with)
}

/// The middle layer is lost now and then.
fn holes(number: u32) -> LayerSet {
    if number % 10 == 5 { LayerSet::NONE.with(0).with(2) } else { LayerSet::ALL }
}

#[test]
fn each_layer_makes_the_picture_better() {
    let [one, two, three] = [1, 2, 3].map(|depth| quality(8, up_to(depth), Chained::Yes));
    assert!(one > 0.4 && two > one + 0.01 && three > two, "{one} {two} {three}");
}

#[test]
fn a_lost_layer_costs_no_more_than_it_until_the_next_beginning() {
    let base = quality(8, up_to(1), Chained::Yes);
    let kept = quality(8, holes, Chained::Yes);
    assert!(kept > base + 0.01, "{kept} {base}");
    // Decoded all the same, what refers to it shows errors that the decoder does not report.
    assert!(quality(8, holes, Chained::No) <= kept + 0.005);
}

#[test]
fn layers_decoded_late_give_the_pictures_that_they_would_have_given_in_time() {
    let mut encoder = Encoder::new(settings(8)).expect("libvpx takes these settings");
    let mut decoders = [Decoder::new(), Decoder::new()].map(|decoder| decoder.expect("libvpx has a decoder"));
    let mut chain = Chain::default();
    let mut all: Vec<Encoded> = Vec::new();
    let mut whole = 0;
    for number in 0..40_u32 {
        all.push(encoder.encode(&test_picture(WIDTH, HEIGHT, number)).expect("a picture of the right size"));
        // Of frames 3, 4, 5 of ten the upper layers come late: with frame 6, those of frame 9 with the one after it.
        let late = |number: u32| [3, 4, 5, 9].contains(&(number % 10));
        let comes = |number: u32| match number % 10 {
            6 => (number - 3..=number).collect(),
            0 => (number.saturating_sub(1)..=number).collect(),
            _ if late(number) => Vec::new(),
            _ => vec![number],
        };
        for frame in comes(number) {
            arrive(&mut chain, frame, LayerSet::ALL, all[frame as usize].fresh);
        }
        let layer = |&(frame, layer): &(u32, usize)| all[frame as usize].layers[layer].as_slice();
        let order = chain.show(number);
        let shown = decoders[0].decode(&order.iter().map(layer).collect::<Vec<_>>()).expect("in order");
        let of_it: Vec<&[u8]> = (0..LAYERS).map(|index| layer(&(number, index))).collect();
        let perfect = decoders[1].decode(&of_it).expect("nothing is missing");
        assert_eq!(chain.depth(number), if late(number) { 1 } else { 3 }, "{number}");
        if !late(number) {
            assert!(shown == perfect, "{number}: late layers leave no error");
            whole += 1;
        }
    }
    assert_eq!(whole, 24);
}

#[test]
fn layers_take_turns_to_begin_anew() {
    let fresh = |period, number| References { period }.fresh(number);
    assert_eq!([0, 1, 4, 8, 12, 16].map(|number| fresh(8, number).bits()), [7, 0, 4, 2, 4, 2]);
    assert_eq!([0, 1, 2].map(|number| fresh(0, number).bits()), [7, 0, 0]);
    assert_eq!([0, 1, 2].map(|number| fresh(1, number).bits()), [7, 6, 6]);
}

/// The bytes of these pictures.
fn encode(encoder: &mut Encoder, numbers: std::ops::Range<u32>) -> usize {
    let encoded = numbers.map(|number| encoder.encode(&test_picture(WIDTH, HEIGHT, number)));
    encoded.map(|encoded| encoded.expect("a picture").layers.iter().map(Vec::len).sum::<usize>()).sum()
}

#[test]
fn rates_can_change_on_the_way() {
    let mut encoder = Encoder::new(settings(8)).expect("libvpx takes these settings");
    encode(&mut encoder, 0..30);
    let before = encode(&mut encoder, 30..60);
    encoder.set_rates([50, 100, 100]).expect("libvpx takes these rates");
    encode(&mut encoder, 60..90);
    let after = encode(&mut encoder, 90..120);
    assert!(after * 2 < before, "{before} then {after}");
}

#[test]
fn what_cannot_be_encoded_is_said() {
    assert!(matches!(Encoder::new(Settings { width: 0, ..settings(8) }), Err(EncodeError::Library(_))));
    let mut encoder = Encoder::new(settings(8)).expect("libvpx takes these settings");
    let other = encoder.encode(&Picture::grey(64, 64));
    assert_eq!(other, Err(EncodeError::Size(64, 64, WIDTH, HEIGHT)));
}

/// Returns the number of pictures, of 85 whose content changes, that have a base layer a quarter larger than the 417
/// bytes that 100 kbit/s are, and the mean size.
fn base_layers(base: Base) -> (usize, usize) {
    let mut encoder = Encoder::new(Settings { base, ..settings(16) }).expect("libvpx takes these settings");
    let sizes = (0..90_u32).map(|number| {
        // The test picture moves, then stands still, then moves on at twice the pace.
        let number = if number < 30 { number } else { 30 + number.saturating_sub(50) * 2 };
        encoder.encode(&test_picture(WIDTH, HEIGHT, number)).expect("a picture").layers[0].len()
    });
    let sizes: Vec<usize> = sizes.skip(5).collect();
    let large = sizes.iter().filter(|bytes| **bytes * 4 > 417 * 5).count();
    (large, sizes.iter().sum::<usize>() / sizes.len())
}

#[test]
fn a_rehearsal_keeps_base_layers_from_being_large() {
    let (rated, rehearsed) = (base_layers(Base::Rated), base_layers(Base::Rehearsed));
    assert!(rehearsed.0 * 3 < rated.0, "{rehearsed:?} {rated:?}");
    assert!((334..=500).contains(&rehearsed.1), "{rehearsed:?} {rated:?}");
}

#[test]
fn odd_sizes_are_encoded_too() {
    let settings = Settings { width: 101, height: 67, ..settings(8) };
    let mut encoder = Encoder::new(settings).expect("libvpx takes these settings");
    let mut decoder = Decoder::new().expect("libvpx has a decoder");
    let picture = test_picture(101, 67, 0);
    let encoded = encoder.encode(&picture).expect("a picture");
    let layers: Vec<&[u8]> = encoded.layers.iter().map(Vec::as_slice).collect();
    let decoded = decoder.decode(&layers).expect("all layers");
    assert!(like(&picture, &decoded) > 0.8);
}

#[test]
fn damaged_layers_end_in_an_error_or_a_picture_and_never_worse() {
    let mut encoder = Encoder::new(settings(8)).expect("libvpx takes these settings");
    let encoded = encoder.encode(&test_picture(WIDTH, HEIGHT, 0)).expect("a picture");
    let mut decoder = Decoder::new().expect("libvpx has a decoder");
    assert!(decoder.decode(&[]).is_err() && decoder.decode(&[&[]]).is_err());
    assert!(decoder.decode(&[&[0xff; 40]]).is_err());
    for (index, step) in (0..encoded.layers[0].len()).step_by(7).zip(1..) {
        let mut damaged = encoded.layers[0].clone();
        damaged[index] ^= 1 << (step % 8);
        let _ = decoder.decode(&[&damaged]);
        let _ = decoder.decode(&[&encoded.layers[0][..index]]);
    }
    let mut fresh = Decoder::new().expect("libvpx has a decoder");
    assert!(fresh.decode(&[&encoded.layers[0]]).is_ok());
}

/// A picture of fine texture.
fn texture(width: usize, height: usize) -> Picture {
    let mut picture = Picture::grey(width, height);
    let mut state = 7_u32;
    for (index, pixel) in picture.plane_mut(crate::picture::Plane::Y).iter_mut().enumerate() {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let square = if (index / 16 + index / width / 16).is_multiple_of(2) { 200 } else { 40 };
        *pixel = square + (state % 32) as u8;
    }
    picture
}

#[test]
fn a_new_scene_costs_the_base_layer_no_more_than_a_key_frame_and_begins_all_layers_anew() {
    // Of smaller pictures libvpx looks for no scenes.
    let (width, height) = (640, 360);
    let settings = Settings { width, height, ..settings(0) };
    let mut encoder = Encoder::new(settings).expect("libvpx takes these settings");
    let mut encode = |picture: &Picture| encoder.encode(picture).expect("a picture of the right size");
    let (still, other) = (Picture::grey(width, height), texture(width, height));
    for _ in 0..30 {
        encode(&still);
    }
    let cut = encode(&other);
    assert!(cut.fresh.contains(1) && cut.fresh.contains(2) && !cut.fresh.contains(0), "{:?}", cut.fresh);
    // Encoded by itself at the start of a video.
    let key = Encoder::new(settings).and_then(|mut first| first.encode(&other));
    let key = key.expect("a picture of the right size").layers[0].len();
    assert!(cut.layers[0].len() <= key, "{} after {key}", cut.layers[0].len());
    assert_eq!(encode(&other).fresh, LayerSet::NONE);
}
