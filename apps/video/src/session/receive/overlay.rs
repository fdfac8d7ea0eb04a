//! A strip below the picture that says how old it is and how many layers it has, for recordings.

use crate::layers::LAYERS;
use crate::picture::{Picture, Plane};
use std::time::Duration;

/// Rows of the strip, an even number.
const STRIP: usize = 40;
/// Pixels of a dot of a letter.
const DOT: usize = 4;
/// Dots of a letter, and of the gap behind it.
const LETTER: (usize, usize) = (3, 5);
/// The latency that fills the bar.
const LONGEST: Duration = Duration::from_millis(500);

const BLACK: u8 = 16;
const GREY: u8 = 90;
const WHITE: u8 = 235;

/// `picture` with a strip below it: `title`, the latency in figures and as a bar, and a square for each layer.
pub(super) fn with_strip(picture: &Picture, title: &str, latency: Duration, depth: usize) -> Picture {
    let mut page = Picture::grey(picture.width(), picture.height() + STRIP);
    for plane in Plane::ALL {
        let below = if plane == Plane::Y { BLACK } else { 128 };
        let (from, to) = (picture.plane(plane), page.plane_mut(plane));
        to[..from.len()].copy_from_slice(from);
        to[from.len()..].fill(below);
    }
    let top = picture.height();
    let bar = page.width() as f64 * (latency.as_secs_f64() / LONGEST.as_secs_f64()).min(1.0);
    fill(&mut page, (0, top + 2), (bar as usize, 4), WHITE);
    let text = format!("{title} {} ms", latency.as_millis());
    write(&mut page, (8, top + 12), &text);
    for layer in 0..LAYERS {
        let value = if layer < depth { WHITE } else { GREY };
        let left = page.width().saturating_sub((LAYERS - layer) * 24);
        fill(&mut page, (left, top + 14), (16, 16), value);
    }
    page
}

fn write(page: &mut Picture, (mut x, y): (usize, usize), text: &str) {
    for letter in text.chars() {
        let rows = glyph(letter);
        for (row, bits) in rows.into_iter().enumerate() {
            for column in (0..LETTER.0).filter(|column| bits & (4 >> column) != 0) {
                fill(page, (x + column * DOT, y + row * DOT), (DOT, DOT), WHITE);
            }
        }
        x += (LETTER.0 + 1) * DOT;
    }
}

/// A rectangle of one brightness, as far as it is within the page.
fn fill(page: &mut Picture, (x, y): (usize, usize), (width, height): (usize, usize), value: u8) {
    let (columns, rows) = page.size(Plane::Y);
    let end = (x + width).min(columns);
    let plane = page.plane_mut(Plane::Y);
    for row in y..(y + height).min(rows) {
        if x < end {
            plane[row * columns + x..row * columns + end].fill(value);
        }
    }
}

/// A letter in five rows of three dots; what is not known is a space.
fn glyph(letter: char) -> [u8; LETTER.1] {
    match letter {
        '0' | 'o' => [7, 5, 5, 5, 7],
        '1' => [2, 6, 2, 2, 7],
        '2' | 'z' => [7, 1, 7, 4, 7],
        '3' => [7, 1, 7, 1, 7],
        '4' => [5, 5, 7, 1, 1],
        '5' | 's' => [7, 4, 7, 1, 7],
        '6' => [7, 4, 7, 5, 7],
        '7' => [7, 1, 1, 1, 1],
        '8' => [7, 5, 7, 5, 7],
        '9' | 'g' => [7, 5, 7, 1, 7],
        'a' => [7, 5, 7, 5, 5],
        'b' => [6, 5, 6, 5, 6],
        'c' => [7, 4, 4, 4, 7],
        'd' => [6, 5, 5, 5, 6],
        'e' => [7, 4, 7, 4, 7],
        'f' => [7, 4, 7, 4, 4],
        'h' => [5, 5, 7, 5, 5],
        'i' => [7, 2, 2, 2, 7],
        'j' => [1, 1, 1, 5, 7],
        'k' => [5, 5, 6, 5, 5],
        'l' => [4, 4, 4, 4, 7],
        'm' => [5, 7, 7, 5, 5],
        'n' => [6, 5, 5, 5, 5],
        'p' => [7, 5, 7, 4, 4],
        'q' => [7, 5, 5, 7, 1],
        'r' => [7, 5, 6, 5, 5],
        't' => [7, 2, 2, 2, 2],
        'u' => [5, 5, 5, 5, 7],
        'v' => [5, 5, 5, 5, 2],
        'w' => [5, 5, 7, 7, 5],
        'x' => [5, 5, 2, 5, 5],
        'y' => [5, 5, 2, 2, 2],
        '-' => [0, 0, 7, 0, 0],
        _ => [0; LETTER.1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strip_is_below_and_says_the_latency_by_its_bar() {
        let picture = Picture::grey(320, 180);
        let page = with_strip(&picture, "hvc", Duration::from_millis(250), 2);
        assert_eq!((page.width(), page.height()), (320, 180 + STRIP));
        assert!(page.plane(Plane::Y)[..320 * 180].iter().all(|pixel| *pixel == 128));
        let bar = &page.plane(Plane::Y)[320 * 183..320 * 184];
        assert_eq!(bar.iter().filter(|pixel| **pixel == WHITE).count(), 160);
        let squares = &page.plane(Plane::Y)[320 * 196..320 * 197];
        assert_eq!(squares[240..].iter().filter(|pixel| **pixel == WHITE).count(), 32);
    }

    #[test]
    fn what_does_not_fit_is_cut_off() {
        let picture = Picture::grey(17, 17);
        with_strip(&picture, "a title that is too long", Duration::from_secs(60), 3);
    }
}
