//! Encodes a clip and writes what the lab needs of it: the bytes of each layer, and how like the source the decoded picture
//! is with and without the layers above.
//!
//! ```sh
//! ffmpeg -r 30 -i FILE -vf scale=1280:720 -pix_fmt yuv420p -f yuv4mpegpipe - | \
//!     cargo run --release -p hvq-video --example clip -- [PERIOD] > CLIP.csv
//! ```
//!
//! PERIOD is that of [`References`]. On standard error it says how good the pictures are, on average, also with layers
//! missing at random: once as a decoder shows them that does not care, once with only what refers to nothing missing.

use hvq_video::clip::{Clip, Frame};
use hvq_video::layers::{Chain, LAYERS, LayerSet};
use hvq_video::message::Reference;
use hvq_video::picture::Picture;
use hvq_video::ssim::ssim;
use hvq_video::vpx::{Decoder, Encoded, Encoder, References, Settings};
use hvq_video::y4m::Reader;
use std::error::Error;
use std::io::{BufReader, stdin};

/// The numbers of frames in a hundred that lose the layers from the middle one on, and of those that lose the highest.
const LOSSES: (u32, u32) = (5, 5);

fn main() -> Result<(), Box<dyn Error>> {
    let references = match std::env::args().nth(1) {
        Some(period) => References { period: period.parse()? },
        None => References::default(),
    };
    let mut input = Reader::new(BufReader::new(stdin().lock()))?;
    let format = input.format();
    let settings = Settings { references, ..Settings::new(format.width, format.height) };
    let mut encoder = Encoder::new(settings)?;
    let mut ends = [Decoder::new()?, Decoder::new()?, Decoder::new()?];
    let (mut careless, mut careful) = (Decoder::new()?, Decoder::new()?);
    let (mut chain, mut lossy, mut frames) = (Chain::default(), [0.0; 2], Vec::new());
    while let Some(picture) = input.read()? {
        let encoded = encoder.encode(&picture)?;
        let mut similar = [0.0; LAYERS];
        for ((depth, decoder), similar) in (1..).zip(&mut ends).zip(&mut similar) {
            *similar = quality(&picture, &encoded, depth, decoder)?;
        }
        let present = present(frames.len() as u32);
        lossy[0] += quality(&picture, &encoded, present.depth(), &mut careless)?;
        let number = frames.len() as u32;
        for layer in (1..LAYERS).filter(|layer| present.contains(*layer)) {
            let fresh = encoded.fresh.contains(layer);
            chain.arrive(number, layer, if fresh { Reference::Fresh } else { Reference::Earlier });
        }
        chain.show(number);
        lossy[1] += quality(&picture, &encoded, chain.depth(number), &mut careful)?;
        let bytes = encoded.layers.each_ref().map(|layer| layer.len() as u32);
        frames.push(Frame { bytes, fresh: encoded.fresh, ssim: similar });
    }
    let count = frames.len() as f64;
    let clip = Clip::new(frames)?;
    print!("{}", clip.text());
    let mean = |layer: usize| clip.frames().iter().map(|frame| frame.ssim[layer]).sum::<f64>() / count;
    eprintln!(
        "period {}: {count} frames, {:.0?} kbit/s; SSIM {:.4} {:.4} {:.4}; with {}+{} % of layers missing {:.4} as \
         decoded without care, {:.4} with",
        references.period,
        clip.rates().map(|rate| rate / 1e3),
        mean(0),
        mean(1),
        mean(2),
        LOSSES.0,
        LOSSES.1,
        lossy[0] / count,
        lossy[1] / count
    );
    Ok(())
}

/// Returns the SSIM of a picture that is made of the first `depth` layers.
fn quality(
    source: &Picture,
    encoded: &Encoded,
    depth: usize,
    decoder: &mut Decoder,
) -> Result<f64, Box<dyn Error>> {
    let layers: Vec<&[u8]> = encoded.layers.iter().take(depth).map(Vec::as_slice).collect();
    Ok(ssim(source, &decoder.decode(&layers)?)?)
}

/// Returns the layers that arrive of frame `number`: the same in every run.
fn present(number: u32) -> LayerSet {
    let dice = number.wrapping_mul(0x9e37_79b9).rotate_left(13).wrapping_mul(0x85eb_ca6b) >> 8;
    let chance = dice % 100;
    match chance {
        _ if number == 0 => LayerSet::ALL,
        chance if chance < LOSSES.0 => LayerSet::NONE.with(0),
        chance if chance < LOSSES.0 + LOSSES.1 => LayerSet::NONE.with(0).with(1),
        _ => LayerSet::ALL,
    }
}
