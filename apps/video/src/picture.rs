//! Pictures as encoders take them: a plane of brightness, and two of colour at half of its width and height (I420).

/// Pictures are at most so wide and so high.
pub const LARGEST: usize = 8192;

/// One picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picture {
    width: usize,
    height: usize,
    /// Brightness, then both colours, row by row without gaps.
    data: Vec<u8>,
}

/// One of the planes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plane {
    /// Brightness.
    Y,
    /// The difference to blue.
    U,
    /// The difference to red.
    V,
}

impl Plane {
    /// All of them, in their order.
    pub const ALL: [Self; 3] = [Self::Y, Self::U, Self::V];
}

impl Picture {
    /// A grey picture of `width` × `height`, each at least 1 and at most [`LARGEST`].
    ///
    /// # Panics
    ///
    /// If they are not.
    pub fn grey(width: usize, height: usize) -> Self {
        assert!((1..=LARGEST).contains(&width) && (1..=LARGEST).contains(&height), "{width}x{height}");
        Self { width, height, data: vec![128; Self::bytes(width, height)] }
    }

    /// Returns the number of bytes of a picture of this size.
    pub const fn bytes(width: usize, height: usize) -> usize {
        width * height + 2 * (width.div_ceil(2) * height.div_ceil(2))
    }

    /// Its width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Its height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Width and height of a plane.
    pub fn size(&self, plane: Plane) -> (usize, usize) {
        match plane {
            Plane::Y => (self.width, self.height),
            Plane::U | Plane::V => (self.width.div_ceil(2), self.height.div_ceil(2)),
        }
    }

    /// All planes, one after another.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// All planes, to be filled.
    pub fn data_mut(&mut self) -> &mut [u8] {
        &mut self.data
    }

    /// One plane, row by row.
    pub fn plane(&self, plane: Plane) -> &[u8] {
        &self.data[self.range(plane)]
    }

    /// One plane, to be filled.
    pub fn plane_mut(&mut self, plane: Plane) -> &mut [u8] {
        let range = self.range(plane);
        &mut self.data[range]
    }

    fn range(&self, plane: Plane) -> std::ops::Range<usize> {
        let (brightness, (width, height)) = (self.width * self.height, self.size(Plane::U));
        let colour = width * height;
        match plane {
            Plane::Y => 0..brightness,
            Plane::U => brightness..brightness + colour,
            Plane::V => brightness + colour..brightness + 2 * colour,
        }
    }
}

/// Pictures that need no file: a chequered ground under a moving bar, with a little noise, so that there is something to
/// encode. `number` is that of the frame.
pub fn test_picture(width: usize, height: usize, number: u32) -> Picture {
    let mut picture = Picture::grey(width, height);
    let shift = number as usize * 4;
    let bar = (number as usize * 7) % width.max(1);
    for (index, pixel) in picture.plane_mut(Plane::Y).iter_mut().enumerate() {
        let (x, y) = (index % width, index / width);
        let square = ((x + shift) / 32 + (y + shift / 2) / 32) % 2;
        let slope = (x * 3 + y * 2 + shift) % 64;
        // A cheap hash: the same in every run.
        let noise = (index as u32 ^ number.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b) >> 29;
        let ground = 60 + square * 70 + slope;
        let value = if x.abs_diff(bar) < 24 { 235 } else { ground + noise as usize };
        *pixel = value.min(235) as u8;
    }
    for plane in [Plane::U, Plane::V] {
        let (columns, _) = picture.size(plane);
        for (index, pixel) in picture.plane_mut(plane).iter_mut().enumerate() {
            *pixel =
                96 + (((index % columns) / 16 + (index / columns) / 16 + number as usize / 8) % 4) as u8 * 16;
        }
    }
    picture
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_lie_one_after_another() {
        let mut picture = Picture::grey(5, 3);
        assert_eq!(picture.data().len(), Picture::bytes(5, 3));
        assert_eq!(Plane::ALL.map(|plane| picture.plane(plane).len()), [15, 6, 6]);
        picture.plane_mut(Plane::U).fill(1);
        assert_eq!(picture.data().iter().position(|byte| *byte == 1), Some(15));
        assert_eq!(picture.data().iter().rposition(|byte| *byte == 1), Some(20));
    }

    #[test]
    fn test_pictures_move() {
        let pictures = [0, 1].map(|number| test_picture(64, 48, number));
        assert_ne!(pictures[0], pictures[1]);
        assert_eq!(pictures[1], test_picture(64, 48, 1));
    }
}
