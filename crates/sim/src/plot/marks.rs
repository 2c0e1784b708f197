//! What happened at a moment: lines across a plot, with their words in as many rows above the plane as keep them apart.

use std::fmt::Write;

use super::escape;

/// Height of a row.
const ROW_HEIGHT: f64 = 13.0;
/// The most that a letter is wide on average.
const LETTER_WIDTH: f64 = 6.3;
/// Room between a line and its words, and between words.
const GAP: f64 = 4.0;
/// Letters of a label; longer ones are cut.
const LETTERS_MAX: usize = 70;

/// The words of one event.
#[derive(Debug, PartialEq)]
struct Label {
    text: String,
    /// Pixel of the line.
    line: f64,
    /// Left end of the words.
    left: f64,
    /// From the plane up.
    row: usize,
}

/// The events of a plot, laid out.
pub(super) struct Marks(Vec<Label>);

impl Marks {
    /// `places` are the pixels of the events with their words; words stay between `left` and `right`.
    pub(super) fn new(places: impl IntoIterator<Item = (f64, String)>, (left, right): (f64, f64)) -> Self {
        let mut labels: Vec<Label> = Vec::new();
        for (line, what) in places {
            let text: String = match what.chars().count() > LETTERS_MAX {
                true => what.chars().take(LETTERS_MAX - 1).chain(['…']).collect(),
                false => what,
            };
            let width = LETTER_WIDTH * text.chars().count() as f64;
            // Beside the line where there is room for it.
            let at = if line > f64::midpoint(left, right) { line - GAP - width } else { line + GAP };
            let at = at.min(right - width).max(left);
            let is_free = |row: usize, labels: &[Label]| {
                let end = |label: &Label| label.left + LETTER_WIDTH * label.text.chars().count() as f64;
                let apart = |label: &Label| label.left > at + width + GAP || end(label) + GAP < at;
                labels.iter().filter(|label| label.row == row).all(apart)
            };
            let row = (0..=labels.len()).find(|row| is_free(*row, &labels)).unwrap_or(0);
            labels.push(Label { text, line, left: at, row });
        }
        Self(labels)
    }

    /// Height of all rows.
    pub(super) fn height(&self) -> f64 {
        self.0.iter().map(|label| ROW_HEIGHT * (label.row + 1) as f64).fold(0.0, f64::max)
    }

    /// Draws them above and across a plane from `top` to `bottom`.
    pub(super) fn draw(&self, (top, bottom): (f64, f64), out: &mut String) {
        let foot = |row: usize| top - 4.0 - ROW_HEIGHT * row as f64;
        for Label { line, row, .. } in &self.0 {
            let _ = write!(out, "<path d=\"M{line:.1} {bottom:.1}V{:.1}\" class=\"k\"/>", foot(*row) - 7.0);
        }
        // Words lie over the lines of others.
        for Label { text, left, row, .. } in &self.0 {
            let (width, foot) = (LETTER_WIDTH * text.chars().count() as f64, foot(*row));
            let _ = write!(
                out,
                "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{ROW_HEIGHT}\" fill=\"#fff\"/>\
                 <text x=\"{left:.1}\" y=\"{foot:.1}\" class=\"v\">{}</text>",
                foot - ROW_HEIGHT + 3.0,
                escape(text)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_never_lie_on_each_other() {
        let events = (0..8).map(|i| (100.0 + 60.0 * f64::from(i), format!("path 0 down: loss 100 % ({i})")));
        let marks = Marks::new(events, (58.0, 622.0));
        let end = |label: &Label| label.left + LETTER_WIDTH * label.text.chars().count() as f64;
        for (i, a) in marks.0.iter().enumerate() {
            assert!(a.left >= 58.0 && end(a) <= 622.0, "{a:?}");
            let others = marks.0[i + 1..].iter().filter(|b| b.row == a.row);
            others.for_each(|b| assert!(a.left > end(b) || b.left > end(a), "{a:?} {b:?}"));
        }
        assert!(marks.height() > ROW_HEIGHT && marks.height() <= 8.0 * ROW_HEIGHT);
        assert_eq!(Marks::new([], (0.0, 1.0)).height(), 0.0);
        let far_apart = Marks::new([(60.0, "a".to_owned()), (600.0, "b".to_owned())], (58.0, 622.0));
        assert_eq!(far_apart.height(), ROW_HEIGHT);
    }
}
