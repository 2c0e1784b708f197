//! The legend: names with their colours under the title, in as many rows as they need.

use std::fmt::Write;

use super::escape;
use super::frame::WIDTH;

/// Left end of each row, pixels.
const LEFT: f64 = 58.0;
/// Top of the first row.
const TOP: f64 = 30.0;
const ROW_HEIGHT: f64 = 16.0;
/// The most that a letter of the legend is wide on average.
const LETTER_WIDTH: f64 = 6.7;
/// Letters of a name; longer ones are cut.
const LETTERS_MAX: usize = 80;

/// Names in rows.
pub(super) struct Legend<'a> {
    rows: Vec<Vec<(f64, String, &'a str)>>,
}

/// Cut to a length that fits.
fn cut(name: &str) -> String {
    if name.chars().count() <= LETTERS_MAX {
        return name.to_owned();
    }
    name.chars().take(LETTERS_MAX - 1).chain(['…']).collect()
}

impl<'a> Legend<'a> {
    pub(super) fn new(entries: &[(&str, &'a str)]) -> Self {
        let mut rows: Vec<Vec<_>> = Vec::new();
        let mut x = f64::MAX;
        for (name, colour) in entries {
            let name = cut(name);
            let width = 36.0 + LETTER_WIDTH * name.chars().count() as f64;
            if x + width > WIDTH {
                rows.push(Vec::new());
                x = LEFT;
            }
            if let Some(row) = rows.last_mut() {
                row.push((x, name, *colour));
            }
            x += width;
        }
        Self { rows }
    }

    pub(super) fn height(&self) -> f64 {
        ROW_HEIGHT * self.rows.len() as f64
    }

    pub(super) fn draw(&self, out: &mut String) {
        for (i, row) in self.rows.iter().enumerate() {
            let y = TOP + ROW_HEIGHT * i as f64;
            for (x, name, colour) in row {
                let _ = write!(
                    out,
                    "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"8\" rx=\"2\" fill=\"{colour}\"/>\
                     <text x=\"{:.1}\" y=\"{:.1}\" class=\"s\">{}</text>",
                    y,
                    x + 19.0,
                    y + 8.0,
                    escape(name)
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_never_overlap() {
        let names: Vec<String> = (0..12).map(|i| format!("a name of some length {i}")).collect();
        let entries: Vec<_> = names.iter().map(|name| (name.as_str(), "#000")).collect();
        let legend = Legend::new(&entries);
        assert!(legend.rows.len() > 2 && legend.rows.iter().map(Vec::len).sum::<usize>() == 12);
        for row in &legend.rows {
            for pair in row.windows(2) {
                assert!(pair[1].0 >= pair[0].0 + 19.0 + LETTER_WIDTH * pair[0].1.chars().count() as f64);
            }
        }
        assert_eq!(Legend::new(&[]).height(), 0.0);
        assert_eq!(Legend::new(&[(&"x".repeat(500), "#000")]).rows[0][0].1.chars().count(), LETTERS_MAX);
    }
}
