//! Small plots as SVG text: lines, steps, bars and boxes with axes that read well, in light and dark.

mod axis;

use axis::Axis;

pub use axis::Scale;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
/// Left, right, top and bottom of the frame.
const MARGINS: (f64, f64, f64, f64) = (64.0, 16.0, 34.0, 46.0);
/// Colours that colour-blind people tell apart (Okabe and Ito).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"];

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

/// Points with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    name: String,
    points: Vec<(f64, f64)>,
    style: Style,
}

/// Five numbers of a set, for a box: least, quartile, median, quartile, most.
#[derive(Clone, Debug, PartialEq)]
struct Boxed {
    name: String,
    numbers: [f64; 5],
}

/// A plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    title: String,
    x: (String, Scale),
    y: (String, Scale),
    curves: Vec<Curve>,
    boxes: Vec<Boxed>,
    bars: Vec<(String, f64)>,
    x_range: Option<(f64, f64)>,
    y_range: Option<(f64, f64)>,
}

impl Plot {
    /// An empty plot with labels.
    pub fn new(title: impl Into<String>, x: impl Into<String>, y: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            x: (x.into(), Scale::Linear),
            y: (y.into(), Scale::Linear),
            curves: Vec::new(),
            boxes: Vec::new(),
            bars: Vec::new(),
            x_range: None,
            y_range: None,
        }
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
        if let Some((first, _)) = points.first().copied() {
            points.insert(0, (first, 0.0));
        }
        self.curve(name, points, Style::Step);
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
        self.bars.push((name.into(), value));
    }

    /// The plot as an SVG element.
    pub fn svg(&self) -> String {
        let frame = Frame::of(self);
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\">\
             <title>{}</title>",
            escape(&self.title)
        );
        frame.grid(self, &mut out);
        for (i, curve) in self.curves.iter().enumerate() {
            frame.curve(curve, colour(i), &mut out);
        }
        let slots = self.boxes.len() + self.bars.len();
        for (i, boxed) in self.boxes.iter().enumerate() {
            frame.boxed(boxed, frame.slot(i, slots), colour(i), &mut out);
        }
        for (i, (name, value)) in self.bars.iter().enumerate() {
            frame.bar(name, *value, frame.slot(self.boxes.len() + i, slots), colour(i), &mut out);
        }
        self.legend(&mut out);
        out.push_str("</svg>");
        out
    }

    fn legend(&self, out: &mut String) {
        let (left, _, top, _) = MARGINS;
        let mut x = left;
        for (i, curve) in self.curves.iter().enumerate().filter(|_| self.curves.len() > 1) {
            out.push_str(&format!(
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"3\" fill=\"{}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" class=\"s\">{}</text>",
                top - 10.0,
                colour(i),
                x + 18.0,
                top - 5.0,
                escape(&curve.name)
            ));
            x += 30.0 + 6.6 * curve.name.chars().count() as f64;
        }
    }
}

fn colour(index: usize) -> &'static str {
    COLOURS.get(index % COLOURS.len()).copied().unwrap_or("#000")
}

/// Text that is safe inside SVG and HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The plane between the axes.
struct Frame {
    x: Axis,
    y: Axis,
    named_slots: bool,
}

impl Frame {
    fn of(plot: &Plot) -> Self {
        let (left, right, top, bottom) = MARGINS;
        let points = || plot.curves.iter().flat_map(|curve| curve.points.iter().copied());
        let named_slots = !plot.boxes.is_empty() || !plot.bars.is_empty();
        let mut xs: Vec<f64> = points().map(|(x, _)| x).collect();
        let mut ys: Vec<f64> = points().map(|(_, y)| y).collect();
        ys.extend(plot.boxes.iter().flat_map(|boxed| boxed.numbers));
        ys.extend(plot.bars.iter().map(|(_, value)| *value));
        if !plot.bars.is_empty() {
            ys.push(0.0);
        }
        xs.extend(plot.x_range.into_iter().flat_map(|(a, b)| [a, b]));
        ys.extend(plot.y_range.into_iter().flat_map(|(a, b)| [a, b]));
        Self {
            x: Axis::new(&xs, plot.x.1, (left, WIDTH - right)),
            y: Axis::new(&ys, plot.y.1, (HEIGHT - bottom, top)),
            named_slots,
        }
    }

    /// Left and right of the place of a box or bar.
    fn slot(&self, index: usize, count: usize) -> (f64, f64) {
        let (from, to) = self.x.pixels;
        let width = (to - from) / count.max(1) as f64;
        let middle = from + width * (index as f64 + 0.5);
        let half = (width * 0.35).min(40.0);
        (middle - half, middle + half)
    }

    fn grid(&self, plot: &Plot, out: &mut String) {
        let ((left, right), (bottom, top)) = (self.x.pixels, self.y.pixels);
        for (value, label) in self.y.ticks() {
            let y = self.y.place(value);
            out.push_str(&format!(
                "<path d=\"M{left:.1} {y:.1}H{right:.1}\" class=\"g\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" class=\"e\">{label}</text>",
                left - 6.0,
                y + 4.0
            ));
        }
        for (value, label) in self.x.ticks().into_iter().filter(|_| !self.named_slots) {
            let x = self.x.place(value);
            out.push_str(&format!(
                "<path d=\"M{x:.1} {bottom:.1}V{top:.1}\" class=\"g\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" class=\"m\">{label}</text>",
                bottom + 16.0
            ));
        }
        out.push_str(&format!(
            "<path d=\"M{left:.1} {top:.1}V{bottom:.1}H{right:.1}\" class=\"a\"/>\
             <text x=\"{left:.1}\" y=\"14\" class=\"t\">{}</text>\
             <text x=\"{:.1}\" y=\"{:.1}\" class=\"m\">{}</text>\
             <text transform=\"translate(14 {:.1}) rotate(-90)\" class=\"m\">{}</text>",
            escape(&plot.title),
            f64::midpoint(left, right),
            HEIGHT - 8.0,
            escape(&plot.x.0),
            f64::midpoint(top, bottom),
            escape(&plot.y.0)
        ));
    }

    fn curve(&self, curve: &Curve, colour: &str, out: &mut String) {
        let place = |(x, y): (f64, f64)| (self.x.place(x), self.y.place(y));
        if curve.style == Style::Dots {
            for (x, y) in curve.points.iter().copied().map(place) {
                out.push_str(&format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{colour}\"/>"));
            }
            return;
        }
        let mut path = String::new();
        for (i, (x, y)) in curve.points.iter().copied().map(place).enumerate() {
            match (i, curve.style) {
                (0, _) => path.push_str(&format!("M{x:.1} {y:.1}")),
                (_, Style::Step) => path.push_str(&format!("H{x:.1}V{y:.1}")),
                _ => path.push_str(&format!("L{x:.1} {y:.1}")),
            }
        }
        out.push_str(&format!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"><title>{}</title></path>",
            escape(&curve.name)
        ));
    }

    fn boxed(&self, boxed: &Boxed, (left, right): (f64, f64), colour: &str, out: &mut String) {
        let [least, low, median, high, most] = boxed.numbers.map(|number| self.y.place(number));
        let middle = f64::midpoint(left, right);
        out.push_str(&format!(
            "<path d=\"M{middle:.1} {least:.1}V{low:.1}M{middle:.1} {high:.1}V{most:.1}\" stroke=\"{colour}\"/>\
             <rect x=\"{left:.1}\" y=\"{high:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\" \
             fill-opacity=\"0.25\" stroke=\"{colour}\"/>\
             <path d=\"M{left:.1} {median:.1}H{right:.1}\" stroke=\"{colour}\" stroke-width=\"2.5\"/>",
            right - left,
            (low - high).max(0.5)
        ));
        self.slot_name(&boxed.name, middle, out);
    }

    fn bar(&self, name: &str, value: f64, (left, right): (f64, f64), colour: &str, out: &mut String) {
        let (zero, top) = (self.y.place(0.0), self.y.place(value));
        let middle = f64::midpoint(left, right);
        out.push_str(&format!(
            "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>\
             <text x=\"{middle:.1}\" y=\"{:.1}\" class=\"m\">{}</text>",
            top.min(zero),
            right - left,
            (zero - top).abs().max(0.5),
            top.min(zero) - 4.0,
            axis::short(value)
        ));
        self.slot_name(name, middle, out);
    }

    fn slot_name(&self, name: &str, middle: f64, out: &mut String) {
        let y = self.y.pixels.0 + 16.0;
        out.push_str(&format!("<text x=\"{middle:.1}\" y=\"{y:.1}\" class=\"m\">{}</text>", escape(name)));
    }
}

/// The style that the classes of the plots need, for the page around them.
pub const STYLE: &str = "svg{width:100%;height:auto;font:12px system-ui,sans-serif}\
svg text{fill:currentColor}svg .t{font-weight:600;font-size:13px}svg .e{text-anchor:end}svg .m{text-anchor:middle}\
svg .s{font-size:11px}svg .g{stroke:currentColor;stroke-opacity:.12}svg .a{stroke:currentColor;fill:none;stroke-opacity:.6}";

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
        let svg = plot.svg();
        assert!(svg.contains("a &lt; b &amp; &quot;c&quot;") && svg.ends_with("</svg>"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(Plot::new("", "", "").svg().matches("<svg").count(), 1);
    }
}
