//! Small plots as SVG text: lines, steps, dots, areas, bars and boxes with axes that read well. Dark on light, with
//! nothing fetched from anywhere.

mod axis;
mod frame;
mod legend;
mod marks;
pub mod png;

use std::fmt::Write;

use frame::{Among, Frame};

pub use axis::Scale;

/// Colours that colour-blind people tell apart (Okabe and Ito).
const COLOURS: [&str; 9] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#7f7f7f", "#000000", "#d8d8d8"];

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Straight lines between them.
    Line,
    /// A step at each of them.
    Step,
    /// A dot for each.
    Dots,
}

/// Points with a name; points that are no numbers leave a gap.
#[derive(Clone, Debug, PartialEq)]
struct Curve {
    name: String,
    points: Vec<(f64, f64)>,
    style: Style,
}

/// What lies between two curves over the same places.
#[derive(Clone, Debug, PartialEq)]
struct Area {
    name: String,
    colour: usize,
    /// Place, lower and upper end.
    points: Vec<(f64, f64, f64)>,
}

/// Five numbers of a set, for a box: least, quartile, median, quartile, most.
#[derive(Clone, Debug, PartialEq)]
struct Boxed {
    name: String,
    numbers: [f64; 5],
}

/// Bars side by side under one name; the colours mean the same in every group.
#[derive(Clone, Debug, PartialEq)]
struct Bars {
    name: String,
    values: Vec<f64>,
}

/// A plot that is drawn as SVG.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    title: String,
    x: (String, Scale),
    y: (String, Scale),
    curves: Vec<Curve>,
    areas: Vec<Area>,
    boxes: Vec<Boxed>,
    bars: Vec<Bars>,
    bar_names: Vec<String>,
    marks: Vec<(f64, String)>,
    x_range: Option<(f64, f64)>,
    y_range: Option<(f64, f64)>,
}

impl Plot {
    /// An empty plot with labels; they give the units.
    pub fn new(title: impl Into<String>, x: impl Into<String>, y: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            x: (x.into(), Scale::Linear),
            y: (y.into(), Scale::Linear),
            curves: Vec::new(),
            areas: Vec::new(),
            boxes: Vec::new(),
            bars: Vec::new(),
            bar_names: Vec::new(),
            marks: Vec::new(),
            x_range: None,
            y_range: None,
        }
    }

    /// What it shows.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Whether it has boxes.
    pub fn has_boxes(&self) -> bool {
        !self.boxes.is_empty()
    }

    /// With this scale of the horizontal axis.
    pub fn x_scale(mut self, scale: Scale) -> Self {
        self.x.1 = scale;
        self
    }

    /// With at least this range of the horizontal axis.
    pub fn x_range(mut self, low: f64, high: f64) -> Self {
        self.x_range = Some((low, high));
        self
    }

    /// With at least this range of the vertical axis.
    pub fn y_range(mut self, low: f64, high: f64) -> Self {
        self.y_range = Some((low, high));
        self
    }

    /// Adds a curve.
    pub fn curve(&mut self, name: impl Into<String>, points: Vec<(f64, f64)>, style: Style) {
        self.curves.push(Curve { name: name.into(), points, style });
    }

    /// Adds the cumulative distribution of values.
    pub fn cdf(&mut self, name: impl Into<String>, values: impl IntoIterator<Item = f64>) {
        let sorted = crate::stats::Sorted::new(values);
        let total = sorted.len().max(1) as f64;
        let mut points: Vec<(f64, f64)> =
            sorted.values().iter().enumerate().map(|(i, x)| (*x, (i + 1) as f64 / total)).collect();
        // What has no end counts, and the curve stays below 1.
        points.retain(|(x, _)| x.is_finite());
        if let Some((first, _)) = points.first().copied() {
            points.insert(0, (first, 0.0));
        }
        self.curve(name, points, Style::Step);
    }

    /// Lays values of several names over each other at each place; the number before a name is its colour.
    pub fn stacked(&mut self, places: &[f64], layers: Vec<(usize, String, Vec<f64>)>) {
        let mut base = vec![0.0; places.len()];
        for (colour, name, values) in layers {
            let layer = places.iter().zip(base.iter_mut()).zip(values);
            let points = layer.map(|((place, base), value)| {
                let low = *base;
                *base += value;
                (*place, low, *base)
            });
            self.areas.push(Area { name, colour, points: points.collect() });
        }
    }

    /// Adds a box for values.
    pub fn boxed(&mut self, name: impl Into<String>, values: impl IntoIterator<Item = f64>) {
        let sorted = crate::stats::Sorted::new(values);
        let at = |share| sorted.quantile(share);
        if let [Some(a), Some(b), Some(c), Some(d), Some(e)] = [0.0, 0.25, 0.5, 0.75, 1.0].map(at) {
            self.boxes.push(Boxed { name: name.into(), numbers: [a, b, c, d, e] });
        }
    }

    /// Adds a bar.
    pub fn bar(&mut self, name: impl Into<String>, value: f64) {
        self.bars.push(Bars { name: name.into(), values: vec![value] });
    }

    /// Names the bars of every group, in order.
    pub fn bar_names(&mut self, names: impl IntoIterator<Item = String>) {
        self.bar_names = names.into_iter().collect();
    }

    /// Adds a group of bars.
    pub fn bar_group(&mut self, name: impl Into<String>, values: Vec<f64>) {
        self.bars.push(Bars { name: name.into(), values });
    }

    /// A line across at a place of the horizontal axis, with what happened there.
    pub fn mark(&mut self, place: f64, what: impl Into<String>) {
        self.marks.push((place, what.into()));
    }

    /// Name and colour of everything that needs a legend.
    fn legend(&self) -> Vec<(&str, &'static str)> {
        let curves = self.curves.iter().enumerate().map(|(i, curve)| (curve.name.as_str(), colour(i)));
        let areas = self.areas.iter().map(|area| (area.name.as_str(), colour(area.colour)));
        let bars = self.bar_names.iter().enumerate().map(|(i, name)| (name.as_str(), colour(i)));
        let all: Vec<_> = curves.chain(areas).chain(bars).collect();
        if all.len() > 1 { all } else { Vec::new() }
    }

    /// The plot as an SVG element that is whole in itself: it can also be a file of its own.
    pub fn svg(&self) -> String {
        let legend = legend::Legend::new(&self.legend());
        let frame = Frame::of(self, legend.height());
        let mut out = String::new();
        let (width, height) = (frame::WIDTH, frame.height());
        let _ = write!(
            out,
            "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
             xmlns=\"http://www.w3.org/2000/svg\"><style>{STYLE}</style><title>{}</title>\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>",
            escape(&self.title)
        );
        self.areas.iter().for_each(|area| frame.area(area, &mut out));
        frame.grid(self, &mut out);
        frame.marks(&mut out);
        for (i, curve) in self.curves.iter().enumerate() {
            let alike = |other: &&Curve| other.points == curve.points && other.style == curve.style;
            let index = self.curves.iter().take(i).filter(alike).count();
            let among = Among { index, count: self.curves.iter().filter(alike).count().max(1) };
            frame.curve(curve, colour(i), among, &mut out);
        }
        let slots = self.boxes.len() + self.bars.len();
        for (i, boxed) in self.boxes.iter().enumerate() {
            frame.boxed(boxed, frame.slot(i, slots), colour(i), &mut out);
        }
        for (i, bars) in self.bars.iter().enumerate() {
            frame.bars(bars, frame.slot(self.boxes.len() + i, slots), self.bar_names.is_empty().then_some(i), &mut out);
        }
        legend.draw(&mut out);
        out.push_str("</svg>");
        out
    }
}

fn colour(index: usize) -> &'static str {
    COLOURS.get(index % COLOURS.len()).copied().unwrap_or("#000")
}

/// Text that is safe inside SVG and HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The style inside each plot.
const STYLE: &str = "text{font:12px 'DejaVu Sans',Verdana,sans-serif;fill:#333}.t{font-weight:700;font-size:14px;\
fill:#111}.e{text-anchor:end}.m{text-anchor:middle}.s{font-size:11px}.v{font-size:10px;fill:#666}\
.g{stroke:#000;stroke-opacity:.1;fill:none}.a{stroke:#444;fill:none}.k{stroke:#888;stroke-dasharray:4 3;fill:none}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_is_whole_and_its_text_safe() {
        let mut plot = Plot::new("a < b & \"c\"", "x", "y").x_scale(Scale::Log);
        plot.curve("one", vec![(1.0, 2.0), (10.0, f64::NAN), (100.0, 3.0)], Style::Line);
        plot.cdf("two", [3.0, 1.0, 2.0]);
        plot.boxed("three", (0..100).map(f64::from));
        plot.bar("four", 12.0);
        plot.mark(10.0, "path 0 dies");
        let svg = plot.svg();
        assert!(svg.contains("a &lt; b &amp; &quot;c&quot;") && svg.ends_with("</svg>"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(Plot::new("", "", "").svg().matches("<svg").count(), 1);
    }

    #[test]
    fn curves_that_are_the_same_all_show() {
        let mut plot = Plot::new("", "", "");
        for name in ["a", "b", "c", "d"] {
            plot.cdf(name, if name == "c" { vec![1.0, 2.0] } else { vec![2.0, 3.0] });
        }
        let svg = plot.svg();
        let dashes: Vec<_> =
            svg.split("stroke-dasharray=\"9 ").skip(1).map(|rest| rest.split('>').next().unwrap()).collect();
        assert_eq!(dashes, ["18\" stroke-dashoffset=\"-9\"", "18\" stroke-dashoffset=\"-18\""]);
    }

    #[test]
    fn what_would_have_happened_later_is_not_marked() {
        let mut plot = Plot::new("", "", "");
        plot.curve("a", vec![(0.0, 1.0), (2.0, 3.0)], Style::Line);
        plot.mark(1.0, "in time");
        plot.mark(9.0, "too late");
        let svg = plot.svg();
        assert!(svg.contains("in time") && !svg.contains("too late"));
    }

    #[test]
    fn layers_lie_on_each_other() {
        let mut plot = Plot::new("", "", "");
        plot.stacked(&[0.0, 1.0], vec![(0, "a".into(), vec![1.0, 2.0]), (1, "b".into(), vec![3.0, 4.0])]);
        assert_eq!(plot.areas[1].points, [(0.0, 1.0, 4.0), (1.0, 2.0, 6.0)]);
        assert_eq!(plot.legend().len(), 2);
    }
}
