//! The plane between the axes, and what is drawn on it.

use std::fmt::Write;

use super::axis::{self, Axis};
use super::marks::Marks;
use super::{Area, Bars, Boxed, Curve, Plot, Style, colour, escape};

/// Width of every plot, pixels.
pub(super) const WIDTH: f64 = 640.0;
/// Height of the plane.
const PLANE_HEIGHT: f64 = 236.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 18.0;
/// Room for the title.
const TOP: f64 = 32.0;
/// Room for ticks and the label below.
const BOTTOM: f64 = 42.0;
/// The most that a letter under a box or bar is wide on average.
const LETTER_WIDTH: f64 = 7.2;
const LINE_HEIGHT: f64 = 14.0;

/// The plane between the axes.
pub(super) struct Frame {
    x: Axis,
    y: Axis,
    /// How names stand under boxes and bars; none where the horizontal axis has numbers.
    names: Option<Names>,
    marks: Marks,
    height: f64,
}

/// How names stand under boxes and bars.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Names {
    /// In lines of so many letters.
    Lines(usize),
    /// Each in one line of at most so many letters that rises to its box, where a word would have to be broken.
    Slanted(usize),
}

/// Slope of slanted names, degrees.
const SLANT_DEGREES: f64 = 50.0;
/// Letters of a slanted name at most.
const SLANT_LETTERS_MAX: usize = 34;

impl Names {
    /// What suits these names in places of this width.
    fn of(names: &[&String], width: f64) -> Self {
        let letters = ((width / LETTER_WIDTH) as usize).max(3);
        let words =
            names.iter().flat_map(|name| name.split_inclusive([' ', '-'])).map(|word| word.trim().chars().count());
        if words.max().unwrap_or(0) <= letters {
            return Self::Lines(letters);
        }
        // The first one begins at the left end of the picture.
        let room = (LEFT + width / 2.0) / (LETTER_WIDTH * SLANT_DEGREES.to_radians().cos());
        Self::Slanted((room as usize).min(SLANT_LETTERS_MAX))
    }

    /// Room that they need below the first line.
    fn height(self, names: &[&String]) -> f64 {
        match self {
            Self::Lines(letters) => {
                let lines = names.iter().map(|name| wrap(name, letters).len()).max().unwrap_or(1);
                LINE_HEIGHT * lines.saturating_sub(1) as f64
            }
            Self::Slanted(letters) => {
                let longest = names.iter().map(|name| cut(name, letters).chars().count()).max().unwrap_or(0);
                longest as f64 * LETTER_WIDTH * SLANT_DEGREES.to_radians().sin()
            }
        }
    }
}

/// The last `letters` of a name, where it is longer: a value stands at its end.
fn cut(name: &str, letters: usize) -> String {
    let count = name.chars().count();
    match count > letters {
        true => ['…'].into_iter().chain(name.chars().skip(count + 1 - letters)).collect(),
        false => name.to_owned(),
    }
}

impl Frame {
    pub(super) fn of(plot: &Plot, legend_height: f64) -> Self {
        let points = || plot.curves.iter().flat_map(|curve| curve.points.iter().copied());
        let areas = || plot.areas.iter().flat_map(|area| area.points.iter().copied());
        let mut xs: Vec<f64> = points().filter(|(_, y)| y.is_finite()).map(|(x, _)| x).collect();
        let mut ys: Vec<f64> = points().map(|(_, y)| y).collect();
        xs.extend(areas().map(|(x, _, _)| x));
        ys.extend(areas().flat_map(|(_, low, high)| [low, high]));
        ys.extend(plot.boxes.iter().flat_map(|boxed| boxed.numbers));
        ys.extend(plot.bars.iter().flat_map(|bars| bars.values.iter().copied()));
        if !plot.bars.is_empty() {
            ys.push(0.0);
        }
        xs.extend(plot.x_range.into_iter().flat_map(|(a, b)| [a, b]));
        ys.extend(plot.y_range.into_iter().flat_map(|(a, b)| [a, b]));
        let names = plot.boxes.iter().map(|boxed| &boxed.name).chain(plot.bars.iter().map(|bars| &bars.name));
        let names: Vec<&String> = names.collect();
        let style = Names::of(&names, (WIDTH - LEFT - RIGHT) / names.len().max(1) as f64);
        let x = Axis::new(&xs, plot.x.1, (LEFT, WIDTH - RIGHT));
        // What happened is said in rows of its own above the plane.
        let events = plot.marks.iter().filter(|(place, _)| x.has(*place));
        let events = events.map(|(place, what)| (x.place(*place), what.clone()));
        let marks = Marks::new(events, (LEFT, WIDTH - RIGHT));
        let top = TOP + legend_height + marks.height();
        let bottom = top + PLANE_HEIGHT;
        // The stacked layers end where the plane ends.
        let y = if areas().next().is_some() {
            Axis::tight(&ys, (bottom, top))
        } else {
            Axis::new(&ys, plot.y.1, (bottom, top))
        };
        Self {
            x,
            y,
            names: (!names.is_empty()).then_some(style),
            marks,
            height: bottom + BOTTOM + style.height(&names),
        }
    }

    /// Height of the whole plot.
    pub(super) fn height(&self) -> f64 {
        self.height
    }

    /// Left and right of the place of a box or of a group of bars.
    pub(super) fn slot(&self, index: usize, count: usize) -> (f64, f64) {
        let (from, to) = self.x.pixels;
        let width = (to - from) / count.max(1) as f64;
        let middle = from + width * (index as f64 + 0.5);
        let half = (width * 0.38).min(56.0);
        (middle - half, middle + half)
    }

    pub(super) fn grid(&self, plot: &Plot, out: &mut String) {
        let ((left, right), (bottom, top)) = (self.x.pixels, self.y.pixels);
        for (value, label) in self.y.ticks() {
            let y = self.y.place(value);
            let _ = write!(
                out,
                "<path d=\"M{left:.1} {y:.1}H{right:.1}\" class=\"g\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" class=\"e s\">{label}</text>",
                left - 6.0,
                y + 4.0
            );
        }
        for (value, label) in self.x.ticks().into_iter().filter(|_| self.names.is_none()) {
            let x = self.x.place(value);
            let _ = write!(
                out,
                "<path d=\"M{x:.1} {bottom:.1}V{top:.1}\" class=\"g\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" class=\"m s\">{label}</text>",
                bottom + 16.0
            );
        }
        let _ = write!(
            out,
            "<path d=\"M{left:.1} {top:.1}V{bottom:.1}H{right:.1}\" class=\"a\"/>\
             <text x=\"{left:.1}\" y=\"18\" class=\"t\">{}</text>\
             <text x=\"{:.1}\" y=\"{:.1}\" class=\"m\">{}</text>\
             <text transform=\"translate(14 {:.1}) rotate(-90)\" class=\"m\">{}</text>",
            escape(&plot.title),
            f64::midpoint(left, right),
            self.height - 7.0,
            escape(&plot.x.0),
            f64::midpoint(top, bottom),
            escape(&plot.y.0)
        );
    }

    /// What happened, and when.
    pub(super) fn marks(&self, out: &mut String) {
        let (bottom, top) = self.y.pixels;
        self.marks.draw((top, bottom), out);
    }

    pub(super) fn area(&self, area: &Area, out: &mut String) {
        let mut path = String::new();
        for (i, (x, _, high)) in area.points.iter().enumerate() {
            let letter = if i == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{letter}{:.1} {:.1}", self.x.place(*x), self.y.place(*high));
        }
        for (x, low, _) in area.points.iter().rev() {
            let _ = write!(path, "L{:.1} {:.1}", self.x.place(*x), self.y.place(*low));
        }
        let _ = write!(
            out,
            "<path d=\"{path}Z\" fill=\"{}\" fill-opacity=\"0.75\"><title>{}</title></path>",
            colour(area.colour),
            escape(&area.name)
        );
    }

    /// `among` tells how many curves are the same, and which of them this is: each shows in dashes of its own.
    pub(super) fn curve(&self, curve: &Curve, colour: &str, among: Among, out: &mut String) {
        let place = |(x, y): (f64, f64)| (self.x.place(x), self.y.place(y));
        if curve.style == Style::Dots {
            for (x, y) in curve.points.iter().copied().filter(|(_, y)| y.is_finite()).map(place) {
                let _ = write!(
                    out,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\" fill=\"{colour}\" fill-opacity=\"0.75\"/>"
                );
            }
            return;
        }
        let mut path = String::new();
        let mut pen_up = true;
        for (x, y) in &curve.points {
            if !y.is_finite() {
                pen_up = true;
                continue;
            }
            let (x, y) = place((*x, *y));
            let _ = match (pen_up, curve.style) {
                (true, _) => write!(path, "M{x:.1} {y:.1}"),
                (false, Style::Step) => write!(path, "H{x:.1}V{y:.1}"),
                (false, _) => write!(path, "L{x:.1} {y:.1}"),
            };
            pen_up = false;
        }
        let _ = write!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.7\" stroke-linejoin=\"round\"{}>\
             <title>{}</title></path>",
            among.dashes(),
            escape(&curve.name)
        );
    }

    pub(super) fn boxed(&self, boxed: &Boxed, (left, right): (f64, f64), colour: &str, out: &mut String) {
        let [least, low, median, high, most] = boxed.numbers.map(|number| self.y.place(number));
        let middle = f64::midpoint(left, right);
        let _ = write!(
            out,
            "<path d=\"M{middle:.1} {least:.1}V{low:.1}M{middle:.1} {high:.1}V{most:.1}\" stroke=\"{colour}\"/>\
             <rect x=\"{left:.1}\" y=\"{high:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\" \
             fill-opacity=\"0.25\" stroke=\"{colour}\"/>\
             <path d=\"M{left:.1} {median:.1}H{right:.1}\" stroke=\"{colour}\" stroke-width=\"2.5\"/>\
             <text x=\"{middle:.1}\" y=\"{:.1}\" class=\"m s\">{}</text>",
            right - left,
            (low - high).max(0.5),
            most - 5.0,
            axis::short(boxed.numbers[2])
        );
        self.slot_name(&boxed.name, middle, out);
    }

    /// `single` is the colour of a bar that stands alone.
    pub(super) fn bars(&self, bars: &Bars, (left, right): (f64, f64), single: Option<usize>, out: &mut String) {
        let zero = self.y.place(0.0);
        let width = (right - left) / bars.values.len().max(1) as f64;
        for (i, value) in bars.values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
            let (x, top) = (left + width * i as f64, self.y.place(*value));
            let _ = write!(
                out,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" class=\"m s\">{}</text>",
                x + 1.0,
                top.min(zero),
                width - 2.0,
                (zero - top).abs().max(0.5),
                colour(single.unwrap_or(i)),
                x + width / 2.0,
                top.min(zero) - 4.0,
                axis::short(*value)
            );
        }
        self.slot_name(&bars.name, f64::midpoint(left, right), out);
    }

    fn slot_name(&self, name: &str, middle: f64, out: &mut String) {
        let letters = match self.names {
            Some(Names::Lines(letters)) => letters,
            Some(Names::Slanted(letters)) => {
                let y = self.y.pixels.0 + 14.0;
                let _ = write!(
                    out,
                    "<text transform=\"translate({middle:.1} {y:.1}) rotate(-{SLANT_DEGREES})\" class=\"e s\">{}</text>",
                    escape(&cut(name, letters))
                );
                return;
            }
            None => usize::MAX,
        };
        for (i, line) in wrap(name, letters).iter().enumerate() {
            let y = self.y.pixels.0 + 16.0 + LINE_HEIGHT * i as f64;
            let _ = write!(out, "<text x=\"{middle:.1}\" y=\"{y:.1}\" class=\"m s\">{}</text>", escape(line));
        }
    }
}

/// The place of a curve among those that are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Among {
    /// Its number among them, from 0.
    pub(super) index: usize,
    /// How many there are.
    pub(super) count: usize,
}

/// Length of a dash, pixels.
const DASH: usize = 9;

impl Among {
    /// The first is whole, the others lie over it in turns.
    fn dashes(self) -> String {
        if self.index == 0 {
            return String::new();
        }
        let pause = DASH * (self.count - 1);
        format!(" stroke-dasharray=\"{DASH} {pause}\" stroke-dashoffset=\"-{}\"", DASH * self.index)
    }
}

/// A name in lines of at most `letters`, broken at spaces and hyphens where that is possible.
fn wrap(name: &str, letters: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in name.split_inclusive([' ', '-']) {
        let mut rest: Vec<char> = word.chars().collect();
        while !rest.is_empty() {
            let Some(line) = lines.last_mut() else { break };
            let room = letters.saturating_sub(line.chars().count());
            let fits = word.trim_end().chars().count().min(rest.len()) <= room;
            if fits || line.is_empty() {
                line.extend(rest.drain(..rest.len().min(letters.max(1))));
            } else {
                lines.push(String::new());
            }
        }
    }
    lines.iter().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_broken_where_they_may_be() {
        assert_eq!(wrap("best path first", 10), ["best path", "first"]);
        assert_eq!(wrap("round-robin", 8), ["round-", "robin"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("", 3), Vec::<String>::new());
    }

    #[test]
    fn words_are_never_broken() {
        let names = ["round-robin", "opportunistic", "tail"].map(str::to_owned);
        let names: Vec<&String> = names.iter().collect();
        assert_eq!(Names::of(&names, 80.0), Names::Slanted(21));
        assert_eq!(Names::of(&names, 100.0), Names::Lines(13));
        assert!(Names::Slanted(21).height(&names) > 13.0 * LETTER_WIDTH * 0.7);
        // A value is at the end of its name.
        assert_eq!((cut("path.0.rtt_ms = 200", 12).as_str(), cut("ecf", 12).as_str()), ("…tt_ms = 200", "ecf"));
    }
}
