//! Structural similarity of two pictures (Wang et al., IEEE Transactions on Image Processing 2004): 1 for equal ones.

use crate::picture::{Picture, Plane};

/// Windows of 8 × 8 pixels, every fourth pixel, as the tools of x264 and FFmpeg take them: their figures compare.
const WINDOW: usize = 8;
const STEP: usize = 4;

/// The constants (k L)² of the definition, with k of 0.01 and 0.03 and L of 255.
const C1: f64 = (0.01 * 255.0) * (0.01 * 255.0);
const C2: f64 = (0.03 * 255.0) * (0.03 * 255.0);

/// The reason for which two pictures cannot be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a picture of {0}x{1} cannot be compared with one of {2}x{3}: both must be of one size, at least 8x8"
)]
pub struct Incomparable(usize, usize, usize, usize);

/// Returns the structural similarity (SSIM) of the brightness of two pictures: the mean over all windows.
pub fn ssim(one: &Picture, other: &Picture) -> Result<f64, Incomparable> {
    let (width, height) = (one.width(), one.height());
    if (other.width(), other.height()) != (width, height) || width < WINDOW || height < WINDOW {
        return Err(Incomparable(width, height, other.width(), other.height()));
    }
    let (one, other) = (one.plane(Plane::Y), other.plane(Plane::Y));
    let (mut sum, mut windows) = (0.0, 0_u32);
    for y in (0..=height - WINDOW).step_by(STEP) {
        for x in (0..=width - WINDOW).step_by(STEP) {
            sum += window(one, other, y * width + x, width);
            windows += 1;
        }
    }
    Ok(sum / f64::from(windows))
}

/// Returns the SSIM of the window whose first pixel is at `start`.
fn window(one: &[u8], other: &[u8], start: usize, width: usize) -> f64 {
    let (mut a, mut b, mut squares, mut products) = (0_u32, 0_u32, 0_u32, 0_u32);
    for row in 0..WINDOW {
        let from = start + row * width;
        for (p, q) in one[from..from + WINDOW].iter().zip(&other[from..from + WINDOW]) {
            let (p, q) = (u32::from(*p), u32::from(*q));
            a += p;
            b += q;
            squares += p * p + q * q;
            products += p * q;
        }
    }
    let pixels = (WINDOW * WINDOW) as f64;
    let (mean_a, mean_b) = (f64::from(a) / pixels, f64::from(b) / pixels);
    // Of a sample: divided by one less than the pixels.
    let scale = 1.0 / (pixels - 1.0);
    let variances = (f64::from(squares) - pixels * (mean_a * mean_a + mean_b * mean_b)) * scale;
    let covariance = (f64::from(products) - pixels * mean_a * mean_b) * scale;
    let luminance = (2.0 * mean_a * mean_b + C1) / (mean_a * mean_a + mean_b * mean_b + C1);
    luminance * (2.0 * covariance + C2) / (variances + C2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::test_picture;

    #[test]
    fn a_picture_is_like_itself() {
        let picture = test_picture(64, 48, 3);
        let similar = ssim(&picture, &picture).expect("they are of one size");
        assert!((similar - 1.0).abs() < 1e-9, "{similar}");
    }

    #[test]
    fn the_more_noise_the_less_alike() {
        let picture = test_picture(64, 48, 3);
        let noisy = |by: u8| {
            let mut noisy = picture.clone();
            let pixels = noisy.plane_mut(Plane::Y).iter_mut().enumerate();
            pixels
                .filter(|(index, _)| index % 3 == 0)
                .for_each(|(_, pixel)| *pixel = pixel.saturating_add(by));
            ssim(&picture, &noisy).expect("they are of one size")
        };
        let similar = [noisy(2), noisy(10), noisy(60)];
        assert!(similar[0] < 1.0 && similar[1] < similar[0] && similar[2] < similar[1], "{similar:?}");
    }

    #[test]
    fn two_flat_pictures_differ_by_their_brightness_alone() {
        let mut one = Picture::grey(8, 8);
        let mut other = one.clone();
        one.plane_mut(Plane::Y).fill(100);
        other.plane_mut(Plane::Y).fill(200);
        // (2ab + C1) / (a² + b² + C1)
        let expected = (40_000.0 + C1) / (50_000.0 + C1);
        let similar = ssim(&one, &other).expect("they are of one size");
        assert!((similar - expected).abs() < 1e-9, "{similar}");
    }

    #[test]
    fn pictures_of_other_sizes_are_not_compared() {
        assert!(ssim(&Picture::grey(16, 16), &Picture::grey(16, 8)).is_err());
        assert!(ssim(&Picture::grey(7, 7), &Picture::grey(7, 7)).is_err());
    }
}
