//! Multiflow QUIC (IEEE Communications Magazine 2021): asymmetric paths, and where acks travel.

use crate::campaign::Row;
use crate::command::CommandError;
use crate::plot::Plot;
use crate::stats::Sorted;

use super::claim::Reference;
use super::{Figure, FigureRequest, rows};

const BYTES: u64 = 10_000_000;

/// Fig. 4: 10 Mbit/s and 20 ms, and a path of 50 Mbit/s down and 10 kbit/s up.
pub(super) fn satellite(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let text = format!(
        "name = \"satellite\"\n[[path]]\nrate_mbps = 10\nrtt_ms = 20\nqueue_bytes = 37500\n\
         [[path]]\ndown = {{ rate_mbps = 50, delay_ms = 10, queue_bytes = 187500 }}\n\
         up = {{ rate_mbps = 0.01, delay_ms = 1000, queue_bytes = 3750 }}\n\
         [transfer]\nkind = \"download\"\nbytes = {BYTES}\n[endpoints]\n\
         [sweep]\nendpoints.extension = [\"none\", \"multipath\", \"multiflow\"]\nendpoints.ack_path = [\"own\", \"fastest\"]\n"
    );
    let seeds = request.points.unwrap_or(15) as u64;
    let rows = rows(request, "satellite", &text, seeds)?;
    let mut figure = Figure::default();
    let mut plot = Plot::new("Download of 10 MB", "", "completion time, s");
    let cases = [
        (
            "primary alone",
            "none",
            "fastest",
            Reference { elsewhere: "TCP 8.37 s".into(), ..Reference::published("about 8.5 s") },
        ),
        (
            "two paths, acks own",
            "multipath",
            "own",
            Reference {
                elsewhere: "MPTCP 10.3 to 10.6 s".into(),
                ..Reference::published("MPQUIC as slow as one path, about 90 KB on the second")
            },
        ),
        ("two paths, acks fastest", "multipath", "fastest", Reference::elsewhere("noq 5.65 s")),
        ("uniflows", "multiflow", "fastest", Reference::published("Multiflow about 1.5 s, 8.4 MB on the second path")),
    ];
    for (name, extension, acks, reference) in cases {
        let is = |row: &&Row| {
            row.cell("endpoints.extension") == Some(extension) && row.cell("endpoints.ack_path") == Some(acks)
        };
        let mine: Vec<&Row> = rows.iter().filter(is).collect();
        let seconds = Sorted::new(mine.iter().filter_map(|row| row.seconds()));
        plot.boxed(name, seconds.values().to_vec());
        let active = Sorted::new(mine.iter().filter_map(|row| row.number("path1_active_ms"))).median();
        let bytes = Sorted::new(mine.iter().filter_map(|row| row.number("path1_down_bytes"))).median();
        figure.claim(
            name,
            reference,
            match active.zip(bytes) {
                Some((active, bytes)) => format!(
                    "{}; second path active at {active:.0} ms, carried {:.2} MB",
                    seconds.summary(),
                    bytes / 1e6
                ),
                None => seconds.summary(),
            },
        );
    }
    figure.notes.push(
        "RFC 10069 validates both ways of a path with a challenge and a response of 1200 bytes each: over 10 kbit/s up and \
         1 s of delay each takes 2 s, and a server may send no data before. A uniflow asks for the way down alone, and the \
         answer comes by the other path"
            .into(),
    );
    figure.plots = vec![plot];
    Ok(figure)
}

/// One way of using two paths.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    extension: &'static str,
    acks: &'static str,
    /// What the paper says of its gain; empty where it says nothing.
    published: &'static str,
}

const OWN: Way = Way {
    name: "RFC 10069, acks own",
    extension: "multipath",
    acks: "own",
    published: "MPQUIC median 73 %, MPTCP 75 %",
};
const FASTEST: Way = Way { name: "RFC 10069, acks fastest", extension: "multipath", acks: "fastest", published: "" };
const UNIFLOWS: Way =
    Way { name: "uniflows", extension: "multiflow", acks: "fastest", published: "Multiflow median 83.5 %" };

/// Both paths have been the first one.
const INITIAL: [&str; 2] = ["0", "1"];

/// All rows of the asymmetric design, point by point.
fn design(request: &FigureRequest<'_>) -> Result<Vec<Vec<Row>>, CommandError> {
    let points = request.points.map_or(String::new(), |points| format!(", points = {points}"));
    let text = format!(
        "name = \"multiflow\"\n[[path]]\nrate_mbps = 1\n[[path]]\nrate_mbps = 1\n[transfer]\nkind = \"download\"\n\
         bytes = {BYTES}\n[endpoints]\n[sweep]\nwsp = {{ design = \"multiflow-asymmetric\"{points} }}\n\
         endpoints.extension = [\"none\", \"multipath\", \"multiflow\"]\nendpoints.ack_path = [\"own\", \"fastest\"]\n\
         endpoints.initial_path = [0, 1]\n"
    );
    let rows = rows(request, "multiflow-asymmetric", &text, 1)?;
    Ok(rows.chunks(12).map(<[Row]>::to_vec).collect())
}

/// When the clock of a download starts.
#[derive(Clone, Copy)]
enum Since {
    /// With the first packet of the handshake.
    Start,
    /// With the request, as in the paper.
    Request,
}

impl Since {
    fn seconds(self, row: &Row) -> Option<f64> {
        let total = row.seconds()?;
        match self {
            Self::Start => Some(total),
            Self::Request => row.number("delay_max_ms").map(|ms| ms / 1e3),
        }
    }
}

/// Seconds over both paths of a point this way.
fn both(point: &[Row], way: Way, initial: &str) -> Option<f64> {
    Since::Start.seconds(find(point, way.extension, way.acks, initial)?)
}

/// Seconds over the initial path of a point alone.
fn alone(point: &[Row], initial: &str) -> Option<f64> {
    Since::Start.seconds(find(point, "none", "fastest", initial)?)
}

/// Time over the initial path alone over that over both.
fn speedups(points: &[Vec<Row>], way: Way, since: Since) -> Sorted {
    let one = |point: &Vec<Row>, initial| {
        let alone = since.seconds(find(point, "none", "fastest", initial)?)?;
        Some(alone / since.seconds(find(point, way.extension, way.acks, initial)?)?)
    };
    Sorted::new(points.iter().flat_map(|point| INITIAL.map(|initial| one(point, initial))).flatten())
}

/// Time of one way over that of another, run by run.
fn ratios(points: &[Vec<Row>], slower: Way, faster: Way) -> Sorted {
    let of = |point: &Vec<Row>| INITIAL.map(|i| Some(both(point, slower, i)? / both(point, faster, i)?));
    Sorted::new(points.iter().flat_map(of).flatten())
}

/// The run of a point by extension, ack route and initial path.
fn find<'a>(point: &'a [Row], extension: &str, acks: &str, initial: &str) -> Option<&'a Row> {
    point.iter().find(|row| {
        row.cell("endpoints.extension") == Some(extension)
            && row.cell("endpoints.ack_path") == Some(acks)
            && row.cell("endpoints.initial_path") == Some(initial)
    })
}

/// Fig. 5: speed-up by the second path.
pub(super) fn speedup(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let points = design(request)?;
    let mut figure = Figure::default();
    let mut plot =
        Plot::new("Time over the initial path / time over both", "speed-up", "share of scenarios").y_range(0.0, 1.0);
    for way in [OWN, FASTEST, UNIFLOWS] {
        let whole = speedups(&points, way, Since::Start);
        let asked = speedups(&points, way, Since::Request);
        plot.cdf(way.name, whole.values().to_vec());
        let cases = [("from the request on", way.published, asked), ("from the first packet on", "", whole)];
        for (since, published, speedups) in cases {
            let median = speedups.median().map_or(f64::NAN, |ratio| 100.0 * (ratio - 1.0));
            figure.claim(
                format!("speed-up {since}, {}", way.name),
                Reference::published(published),
                format!("median {median:.1} %; ratios: {}", speedups.summary()),
            );
        }
        let benefit = |point: &Vec<Row>| {
            let rate = |seconds: Option<f64>| seconds.map(|s| 1.0 / s);
            let single = INITIAL.map(|i| rate(alone(point, i)));
            let single = [single[0]?, single[1]?];
            // The better path first, then the other one.
            let order = if single[1] > single[0] { ["1", "0"] } else { INITIAL };
            Some(order.map(|i| Some(crate::stats::aggregation_benefit(rate(both(point, way, i))?, &single))))
        };
        let benefits: Vec<_> = points.iter().filter_map(benefit).collect();
        let [best, worst] = [0, 1].map(|at| Sorted::new(benefits.iter().filter_map(|pair| pair[at])).summary());
        figure.claim(
            format!("aggregation benefit, {}, best / worst path first", way.name),
            Reference::elsewhere("kernel MPTCP 0.82 / 0.75, noq 0.86 / 0.80"),
            format!("{best} / {worst}"),
        );
    }
    figure.notes.push(
        "the paper's clock starts with the request; ours and that of the plot starts with the first packet of the handshake, \
         which a second path makes no shorter"
            .into(),
    );
    figure.plots = vec![plot];
    Ok(figure)
}

/// Fig. 6: one way of using both paths against the others, run by run.
pub(super) fn routes(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let points = design(request)?;
    let mut plot = Plot::new("Time ratio", "time ratio", "share of scenarios").y_range(0.0, 1.0);
    let mut figure = Figure::default();
    let pairs = [(OWN, FASTEST, ""), (OWN, UNIFLOWS, "Multiflow slightly faster than MPQUIC"), (FASTEST, UNIFLOWS, "")];
    for (slower, faster, published) in pairs {
        let ratios = ratios(&points, slower, faster);
        let name = format!("{} / {}", slower.name, faster.name);
        plot.cdf(name.clone(), ratios.values().to_vec());
        let share = 100.0 * ratios.share(|x| x > 1.0);
        let least = ratios.values().first().copied().unwrap_or(f64::NAN);
        figure.claim(
            format!("time ratio, {name}"),
            Reference::published(published),
            format!(
                "{}; the second is faster in {share:.1} %, at worst by {:.1} % slower",
                ratios.summary(),
                100.0 * (1.0 / least - 1.0)
            ),
        );
    }
    figure.plots = vec![plot];
    Ok(figure)
}
