//! Plots as PNG: the SVG of the report, drawn with the fonts of this crate, so that every machine makes the same picture.

use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

/// Pixels of the picture for each of the plot.
const SCALE: f32 = 2.0;
/// Latin letters of DejaVu Sans, see `fonts/LICENSE`.
const FONTS: [&[u8]; 2] =
    [include_bytes!("../../fonts/DejaVuSans.ttf"), include_bytes!("../../fonts/DejaVuSans-Bold.ttf")];

/// Why a plot could not be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PictureError(String);

fn fonts() -> Arc<Database> {
    static MADE: OnceLock<Arc<Database>> = OnceLock::new();
    let make = || {
        let mut fonts = Database::new();
        FONTS.iter().for_each(|font| fonts.load_font_data(font.to_vec()));
        Arc::new(fonts)
    };
    MADE.get_or_init(make).clone()
}

/// The picture of an SVG that [`super::Plot::svg`] made.
///
/// # Errors
/// It is no SVG, or too large.
pub fn png(svg: &str) -> Result<Vec<u8>, PictureError> {
    let options = Options { font_family: "DejaVu Sans".into(), fontdb: fonts(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| PictureError(error.to_string()))?;
    let size = tree.size().to_int_size().scale_by(SCALE);
    let pixels = size.and_then(|size| Pixmap::new(size.width(), size.height()));
    let mut pixels = pixels.ok_or_else(|| PictureError("it has no size".into()))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| PictureError(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::super::Plot;
    use super::*;

    /// Pixels that are not white in a part of the picture, given as shares of its width and height.
    fn dark(pixels: &Pixmap, (x0, x1): (f64, f64), (y0, y1): (f64, f64)) -> usize {
        let (width, height) = (f64::from(pixels.width()), f64::from(pixels.height()));
        let inside = |i: usize| {
            let (x, y) = ((i % pixels.width() as usize) as f64 / width, (i / pixels.width() as usize) as f64 / height);
            x >= x0 && x < x1 && y >= y0 && y < y1
        };
        let pixels = pixels.pixels().iter().enumerate();
        pixels.filter(|(i, p)| inside(*i) && (p.red() < 160 || p.blue() < 160) && p.alpha() == 255).count()
    }

    #[test]
    fn text_and_curves_are_drawn_without_any_font_of_the_machine() {
        let mut plot = Plot::new("Goodput of both paths", "time, s", "Mbit/s");
        plot.bar("path 0", 3.0);
        plot.bar("path 1", 9.0);
        let bytes = png(&plot.svg()).unwrap();
        let pixels = Pixmap::decode_png(&bytes).unwrap();
        assert_eq!((pixels.width(), pixels.height()), (1280, 620));
        assert!(dark(&pixels, (0.08, 0.5), (0.0, 0.08)) > 500, "the title");
        assert!(dark(&pixels, (0.0, 0.05), (0.2, 0.8)) > 100, "the label of the axis, upright");
        let (left, right) = (dark(&pixels, (0.1, 0.5), (0.2, 0.8)), dark(&pixels, (0.55, 0.95), (0.2, 0.8)));
        assert!(right > left * 2 && left > 1_000, "bars by their values: {left} {right}");
        assert_eq!(bytes, png(&plot.svg()).unwrap(), "the same picture each time");
        assert!(png("<svg").is_err());
    }
}
