use super::*;
use crate::message::Reference;

const FRAME: Duration = Duration::from_millis(33);

fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

fn header(frame: u32, layer: usize) -> LayerHeader {
    let reference = if frame == 0 { Reference::Fresh } else { Reference::Earlier };
    LayerHeader { frame, layer, captured: FRAME * frame, reference }
}

/// Hands in layers as (frame, layer, milliseconds) and returns what is decoded as (frame, milliseconds, depth).
fn play(mut playout: Playout, arrivals: &[(u32, usize, u64)]) -> Vec<(u32, u64, usize)> {
    let mut decoded = Vec::new();
    let mut arrivals = arrivals.iter().peekable();
    loop {
        let next = arrivals.peek().map(|(_, _, at)| ms(*at));
        let Some(now) = [playout.deadline(), next].into_iter().flatten().min() else { return decoded };
        while let Some((frame, layer, at)) = arrivals.next_if(|(_, _, at)| ms(*at) <= now) {
            playout.on_layer(&header(*frame, *layer), ms(*at));
        }
        while let Some(Decoded { frame, at, depth, .. }) = playout.poll(now) {
            decoded.push((frame, at.as_millis() as u64, depth));
        }
    }
}

fn paper(gaps: Gaps) -> Playout {
    Playout::new(Wait::Fixed(Wait::PAPER), gaps)
}

#[test]
fn a_frame_is_decoded_60_ms_after_its_base_layer_with_what_is_there() {
    let arrivals = [(0, 0, 9), (0, 1, 30), (0, 2, 68), (1, 0, 42), (1, 1, 101), (1, 2, 103)];
    assert_eq!(play(paper(Gaps::Wait), &arrivals), [(0, 69, 3), (1, 102, 2)]);
}

#[test]
fn base_layers_of_the_next_two_frames_end_the_wait() {
    let arrivals = [(0, 0, 50), (1, 0, 52), (2, 0, 54), (2, 1, 60)];
    assert_eq!(play(paper(Gaps::Wait), &arrivals), [(0, 54, 1), (1, 112, 1), (2, 114, 1)]);
}

#[test]
fn frames_are_decoded_in_order_even_if_their_base_layers_are_not() {
    let arrivals = [(1, 0, 40), (2, 0, 70), (0, 0, 200), (3, 0, 205)];
    assert_eq!(play(paper(Gaps::Wait), &arrivals), [(0, 200, 1), (1, 200, 1), (2, 200, 1), (3, 265, 1)]);
}

#[test]
fn where_packets_get_lost_a_missing_base_layer_is_skipped() {
    let arrivals = [(0, 0, 10), (2, 0, 76), (1, 0, 300), (3, 0, 301)];
    let mut playout = paper(Gaps::Skip);
    assert_eq!(play(playout.clone(), &arrivals), [(0, 70, 1), (2, 136, 1), (3, 361, 1)]);
    playout.on_layer(&header(0, 0), ms(0));
    playout.on_layer(&header(5, 0), ms(0));
    assert!(playout.poll(ms(60)).is_some() && playout.poll(ms(60)).is_some());
    assert_eq!(playout.skipped(), 4);
}

#[test]
fn a_layer_that_comes_twice_or_too_late_or_from_far_ahead_changes_nothing() {
    let mut playout = paper(Gaps::Wait);
    assert!(playout.on_layer(&header(0, 0), ms(1)));
    assert!(!playout.on_layer(&header(0, 0), ms(50)));
    assert!(!playout.on_layer(&header(MOST_WAITING, 0), ms(50)));
    assert!(!playout.on_layer(&LayerHeader { layer: 7, ..header(0, 0) }, ms(50)));
    assert_eq!(playout.poll(ms(60)), None);
    let decoded = playout.poll(ms(61)).expect("60 ms have passed");
    assert_eq!((decoded.frame, decoded.latency(), decoded.present.depth()), (0, ms(61), 1));
    assert!(playout.on_layer(&header(0, 1), ms(62)), "frames to come refer to it");
    assert!(!playout.on_layer(&header(0, 0), ms(62)));
    assert_eq!(playout.deadline(), None);
}

#[test]
fn what_comes_late_is_decoded_for_the_frames_that_refer_to_it() {
    let arrivals = [
        (0, 0, 9),
        (0, 1, 30),
        (0, 2, 30),
        (1, 0, 42),
        (2, 0, 75),
        (2, 1, 80),
        (2, 2, 80),
        (1, 1, 110),
        (1, 2, 120),
    ];
    // Frame 1 is shown at 102 ms, frame 2 at 135 ms.
    assert_eq!(play(paper(Gaps::Wait), &arrivals), [(0, 69, 3), (1, 102, 1), (2, 135, 3)]);
}

#[test]
fn the_highest_frame_number_ends_the_video_and_nothing_else() {
    let mut playout = paper(Gaps::Skip);
    playout.next = u32::MAX - 1;
    playout.on_layer(&header(u32::MAX - 1, 0), ms(1));
    assert!(playout.poll(ms(61)).is_some());
}

/// The latencies and depths of 60 frames whose base layer takes 9 ms and the other layers `took`, or nothing.
fn adaptive(took: impl Fn(u32) -> Option<u64>) -> Vec<(u64, usize)> {
    let mut arrivals = Vec::new();
    for frame in 0..60 {
        let captured = u64::from(frame) * 33;
        arrivals.push((frame, 0, captured + 9));
        let others =
            took(frame).into_iter().flat_map(|took| [1, 2].map(|layer| (frame, layer, captured + took)));
        arrivals.extend(others);
    }
    arrivals.sort_by_key(|(_, _, at)| *at);
    let playout = Playout::new(Wait::Adaptive(Adaptive::new(Adaptive::MOST)), Gaps::Wait);
    let decoded = play(playout, &arrivals);
    decoded.into_iter().map(|(frame, at, depth)| (at - u64::from(frame) * 33, depth)).collect()
}

#[test]
fn an_adaptive_receiver_decodes_as_soon_as_nothing_is_missing() {
    assert!(adaptive(|_| Some(24)).iter().all(|&played| played == (24, 3)));
}

#[test]
fn an_adaptive_receiver_waits_for_what_takes_a_little_longer_and_no_longer() {
    // The base layer takes 9 ms: 34.8 ms later nothing is waited for any more.
    let played = adaptive(|frame| Some(if frame == 40 { 43 } else { 24 }));
    assert_eq!(played[40], (43, 3));
    let played = adaptive(|frame| Some(if frame == 10 { 60 } else { 24 }));
    // The frame after it has what came late, which it refers to.
    assert_eq!(played[10..12], [(43, 1), (24, 1)]);
    assert_eq!(played[12], (24, 3));
}

#[test]
fn an_adaptive_receiver_makes_an_exception_for_one_frame_of_twenty() {
    let late = |frame: u32| [30, 32, 50].contains(&frame);
    let played = adaptive(|frame| Some(if late(frame) { 60 } else { 24 }));
    // What 32 frames saved is spent on frame 30; by frame 50 there is enough again.
    assert_eq!([30, 32, 50].map(|frame| played[frame]), [(60, 3), (43, 1), (60, 3)]);
    let older = played.iter().filter(|(latency, _)| *latency > 43).count();
    assert!(older * 20 <= played.len(), "{played:?}");
}

#[test]
fn an_adaptive_receiver_does_not_wait_for_what_will_not_come() {
    let played = adaptive(|frame| (frame < 30).then_some(24));
    // One exception is made before that is known.
    assert_eq!(played[30], (129, 1));
    // Those behind it waited with it.
    assert_eq!([31, 32, 33].map(|frame| played[frame]), [(96, 1), (63, 1), (43, 1)]);
    assert!((34..60).all(|frame| played[frame] == (14, 1)), "{played:?}");
}

#[test]
fn an_adaptive_receiver_sees_when_waiting_is_of_use_again() {
    let played = adaptive(|frame| (!(20..40).contains(&frame)).then_some(30));
    assert_eq!(played[39], (14, 1));
    assert_eq!(played[59].0, 30, "{played:?}");
}

#[test]
fn an_adaptive_receiver_measures_by_what_base_layers_typically_take() {
    let mut adaptive = Adaptive::new(ms(30));
    // Two frames of twenty hardly have content, and two took long.
    for frame in 0..20 {
        let took = match frame {
            3 | 4 => 3,
            7 | 8 => 40,
            _ => 10,
        };
        let captured = ms(33 * u64::from(frame));
        let base = captured + ms(took);
        adaptive.on_decoded(frame, (captured, base, base), [Some(base); LAYERS]);
    }
    let there = [Some(ms(1004)), Some(ms(1004)), None];
    assert_eq!(adaptive.due((ms(1000), ms(1004)), &there), ms(1040));
}

#[test]
fn what_an_adaptive_receiver_remembers_is_bounded_and_does_not_age() {
    let mut adaptive = Adaptive::new(ms(30));
    for frame in 0..5000_u32 {
        let captured = ms(33 * u64::from(frame));
        let base = captured + ms(if frame < 4000 { 50 } else { 10 });
        adaptive.on_decoded(frame, (captured, base, base), [Some(base), None, None]);
    }
    assert_eq!(adaptive.due((ms(0), ms(10)), &[Some(ms(10)), None, None]), ms(15), "no other layer comes");
    for frame in 5000..5010 {
        let at = ms(33 * u64::from(frame) + 10);
        adaptive.on_decoded(frame, (at - ms(10), at, at), [Some(at); LAYERS]);
    }
    assert_eq!(adaptive.due((ms(0), ms(10)), &[Some(ms(10)), Some(ms(10)), None]), ms(40));
}

#[test]
fn an_adaptive_receiver_needs_no_common_clock() {
    let adaptive = Adaptive::new(ms(38));
    let due = |captured, base| adaptive.due((ms(captured), ms(base)), &[Some(ms(base)), None, None]);
    // The sender's clock is ten seconds ahead, and then behind.
    assert_eq!([due(10_100, 109), due(100, 10_109)], [ms(147), ms(10_147)]);
}

/// A receiver that saw `frames` frames with all layers in time, of which the layers brought `usual` and then `lately`.
fn taught(frames: u32, usual: f64, lately: f64) -> Adaptive {
    let mut playout = Playout::new(Wait::Adaptive(Adaptive::new(ms(34))), Gaps::Wait);
    for frame in 0..frames {
        let at = FRAME * frame + ms(10);
        (0..LAYERS).for_each(|layer| assert!(playout.on_layer(&header(frame, layer), at)));
        assert!(playout.poll(at).is_some());
        playout.learn(if frame + 1 < frames { usual } else { lately });
    }
    match playout.wait {
        Wait::Adaptive(adaptive) => adaptive,
        Wait::Fixed(_) => unreachable!("it was made adaptive"),
    }
}

#[test]
fn an_adaptive_receiver_makes_exceptions_where_layers_bring_most() {
    let due = |adaptive: Adaptive| adaptive.due((ms(0), ms(10)), &[Some(ms(10)), None, None]);
    assert_eq!([0.05, 0.1, 0.3].map(|lately| due(taught(100, 0.1, lately))), [ms(44), ms(44), ms(130)]);
    // With as many saved as can be, none is worth more than the next.
    assert_eq!(due(taught(2000, 0.1, 0.0)), ms(130));
    assert_eq!(due(taught(100, 0.1, f64::NAN)), ms(44), "what is no number is not learnt");
    assert_eq!(due(taught(10, 0.1, 0.3)), ms(44), "nothing is saved");
}

#[test]
fn a_clock_that_jumps_does_not_stop_an_adaptive_receiver() {
    let due = |captured| taught(10, 0.1, 0.1).due((captured, ms(10)), &[Some(ms(10)), None, None]);
    assert_eq!([Duration::from_secs(3600), Duration::from_micros(u64::MAX)].map(due), [ms(130); 2]);
}
