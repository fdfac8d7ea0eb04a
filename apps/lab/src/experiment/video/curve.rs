//! Quality against latency: what a viewer sees who waits for some time, for every time that one may be ready to wait.
//!
//! No receiver decides anything here, so none can spend a quota of late frames where a percentile does not look.

use crate::workload::video::{Arrival, Program};
use hvq_video::clip::Clip;
use hvq_video::layers::LAYERS;
use hvq_video::message::Reference;
use std::time::Duration;

/// The difference between the times that viewers wait, on the curve.
const STEP: Duration = Duration::from_millis(10);

/// The points of the curve: up to 200 ms, beyond which nobody calls it a conversation (ITU-T G.114: 150 ms is good, 400 ms
/// is the limit).
const POINTS: u32 = 20;

/// The mean quality for each time from [`STEP`] to [`POINTS`] times that: the likeness (SSIM) of each picture that is there so
/// long after its capture, and none for one that is not.
pub(super) fn curve(arrivals: &[Arrival], clip: &Clip, frames: u32) -> Vec<f64> {
    let ready = decodable(arrivals, frames);
    let quality = |wait: Duration| {
        let of = |(number, layers): (u32, &[Option<Duration>; LAYERS])| {
            let by = Program::captured(number) + wait;
            let depth = layers.iter().take_while(|at| at.is_some_and(|at| at <= by)).count();
            depth.checked_sub(1).map_or(0.0, |top| clip.frame(number).ssim[top])
        };
        (0..).zip(&ready).map(of).sum::<f64>() / f64::from(frames.max(1))
    };
    (1..=POINTS).map(|point| quality(STEP * point)).collect()
}

/// The area under `curve`, as the mean over its points, in percent.
pub(super) fn area(curve: &[f64]) -> f64 {
    100.0 * curve.iter().sum::<f64>() / curve.len().max(1) as f64
}

/// The time at which each layer of each frame can be decoded: once it is there, and the layer below it, and unless it begins
/// anew the same layer of the frame before.
fn decodable(arrivals: &[Arrival], frames: u32) -> Vec<[Option<Duration>; LAYERS]> {
    let mut there = vec![[None; LAYERS]; frames as usize];
    for (at, header) in arrivals {
        let place = there.get_mut(header.frame as usize).and_then(|frame| frame.get_mut(header.layer));
        if let Some(place) = place {
            place.get_or_insert((*at, header.reference));
        }
    }
    let mut before = [Some(Duration::ZERO); LAYERS];
    let frame = |layers: [Option<(Duration, Reference)>; LAYERS]| {
        let mut below = Some(Duration::ZERO);
        for (layer, arrived) in layers.into_iter().enumerate() {
            let earlier = match arrived {
                Some((_, Reference::Fresh)) => Some(Duration::ZERO),
                _ => before[layer],
            };
            let ready = arrived.map(|(at, _)| at).zip(earlier).zip(below);
            below = ready.map(|((at, earlier), below)| at.max(earlier).max(below));
            before[layer] = below;
        }
        before
    };
    there.into_iter().map(frame).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq_video::message::LayerHeader;

    fn layer(frame: u32, layer: usize, after: u64) -> Arrival {
        let reference = if frame == 0 { Reference::Fresh } else { Reference::Earlier };
        let captured = Program::captured(frame);
        (captured + Duration::from_millis(after), LayerHeader { frame, layer, captured, reference })
    }

    #[test]
    fn a_layer_waits_for_what_it_refers_to() {
        let arrivals = [layer(0, 0, 5), layer(1, 0, 5), layer(0, 1, 90), layer(1, 1, 20), layer(1, 2, 20)];
        let ready = decodable(&arrivals, 2);
        let since = |frame: u32, layer: usize| {
            ready[frame as usize][layer].map(|at| (at - Program::captured(frame)).as_millis())
        };
        assert_eq!((since(0, 0), since(0, 1), since(0, 2)), (Some(5), Some(90), None));
        // Its reference came 90 ms after the picture before, which was taken an interval earlier.
        let wait = Duration::from_millis(90) - Clip::INTERVAL;
        assert_eq!(since(1, 1), Some(wait.as_millis()));
        assert_eq!(since(1, 2), None);
    }

    #[test]
    fn one_late_frame_in_twenty_costs_a_twentieth_of_the_area() {
        let clip = Clip::builtin("bunny").expect("the clip is compiled in");
        let on_time = |frame: u32| layer(frame, 0, 1);
        let all: Vec<Arrival> = (0..100).map(on_time).collect();
        let late = |frame: u32| if frame % 20 == 19 { layer(frame, 0, 190) } else { on_time(frame) };
        // The frames after a late one refer to it: only those that begin anew are free of it.
        let fresh = |(at, header): Arrival| (at, LayerHeader { reference: Reference::Fresh, ..header });
        let some: Vec<Arrival> = (0..100).map(late).map(fresh).collect();
        let (whole, part) = (area(&curve(&all, &clip, 100)), area(&curve(&some, &clip, 100)));
        let lost = (whole - part) / whole;
        assert!((0.035..0.06).contains(&lost), "{whole} {part}");
    }
}
