//! Multiflow QUIC (IEEE Communications Magazine 2021): asymmetric paths, and where acks travel.

use crate::campaign::Row;
use crate::command::CommandError;
use crate::plot::Plot;
use crate::stats::Sorted;

use super::{Figure, FigureRequest, rows};

const BYTES: u64 = 10_000_000;

/// Fig. 4: 10 Mbit/s and 20 ms, and a path of 50 Mbit/s down and 10 kbit/s up.
pub(super) fn satellite(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let text = format!(
        "name = \"satellite\"\n[[path]]\nrate_mbps = 10\nrtt_ms = 20\nqueue_bytes = 37500\n\
         [[path]]\ndown = {{ rate_mbps = 50, delay_ms = 10, queue_bytes = 187500 }}\n\
         up = {{ rate_mbps = 0.01, delay_ms = 1000, queue_bytes = 3750 }}\n\
         [transfer]\nkind = \"download\"\nbytes = {BYTES}\n[endpoints]\n\
         [sweep]\nendpoints.extension = [\"none\", \"multipath\"]\nendpoints.ack_path = [\"own\", \"fastest\"]\n"
    );
    let seeds = request.points.unwrap_or(15) as u64;
    let rows = rows(request, "satellite", &text, seeds)?;
    let mut figure = Figure::default();
    let mut plot = Plot::new("Download of 10 MB", "", "completion time, s");
    let cases = [
        ("primary alone", "none", "fastest", "TCP 8.37 s; about 8.5 s"),
        ("two paths, acks own", "multipath", "own", "MPTCP 10.3-10.6 s; MPQUIC as slow as one path"),
        ("two paths, acks fastest", "multipath", "fastest", "Multiflow about 1.5 s; noq 5.65 s; goal 5.0 s"),
    ];
    for (name, extension, acks, published) in cases {
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
            published,
            format!(
                "{}; second path active at {:.0} ms, carried {:.2} MB",
                seconds.summary(),
                active.unwrap_or(f64::NAN),
                bytes.unwrap_or(0.0) / 1e6
            ),
        );
    }
    figure.notes.push(
        "RFC 10069 validates with a challenge and a response of 1200 bytes each: over 10 kbit/s up and 1 s of delay one \
         takes 2 s; a path that may carry data without being validated in both directions (Multiflow) skips that"
            .into(),
    );
    figure.plots = vec![plot];
    Ok(figure)
}

/// All rows of the asymmetric design: alone, then both with acks own and fastest; by initial path within.
fn design(request: &FigureRequest<'_>) -> Result<Vec<Vec<Row>>, CommandError> {
    let points = request.points.map_or(String::new(), |points| format!(", points = {points}"));
    let text = format!(
        "name = \"multiflow\"\n[[path]]\nrate_mbps = 1\n[[path]]\nrate_mbps = 1\n[transfer]\nkind = \"download\"\n\
         bytes = {BYTES}\n[endpoints]\n[sweep]\nwsp = {{ design = \"multiflow-asymmetric\"{points} }}\n\
         endpoints.extension = [\"none\", \"multipath\"]\nendpoints.ack_path = [\"own\", \"fastest\"]\n\
         endpoints.initial_path = [0, 1]\n"
    );
    let rows = rows(request, "multiflow-asymmetric", &text, 1)?;
    Ok(rows.chunks(8).map(<[Row]>::to_vec).collect())
}

/// Runs of a point by extension, ack route and initial path.
fn find(point: &[Row], extension: &str, acks: &str, initial: &str) -> Option<f64> {
    let row = point.iter().find(|row| {
        row.cell("endpoints.extension") == Some(extension)
            && row.cell("endpoints.ack_path") == Some(acks)
            && row.cell("endpoints.initial_path") == Some(initial)
    });
    row.and_then(Row::seconds)
}

/// Fig. 5: speed-up by the second path.
pub(super) fn speedup(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let points = design(request)?;
    let mut figure = Figure::default();
    let mut plot =
        Plot::new("Time over the initial path / time over both", "speed-up", "share of scenarios").y_range(0.0, 1.0);
    let published = [("own", "MPQUIC median 73 %, MPTCP 75 %"), ("fastest", "Multiflow median 83.5 %")];
    for (acks, published) in published {
        let ratios = points.iter().flat_map(|point| {
            ["0", "1"].map(|initial| {
                let one = find(point, "none", acks, initial)?;
                Some(one / find(point, "multipath", acks, initial)?)
            })
        });
        let ratios = Sorted::new(ratios.flatten());
        plot.cdf(format!("acks {acks}"), ratios.values().to_vec());
        let median = ratios.median().map_or(f64::NAN, |ratio| 100.0 * (ratio - 1.0));
        figure.claim(
            format!("speed-up, acks {acks}"),
            published,
            format!("median {median:.1} %; ratios: {}", ratios.summary()),
        );
        let benefit = points.iter().flat_map(|point| {
            ["0", "1"].map(|initial| {
                let rate = |seconds: Option<f64>| seconds.map(|s| 1.0 / s);
                let single = [rate(find(point, "none", acks, "0"))?, rate(find(point, "none", acks, "1"))?];
                Some(crate::stats::aggregation_benefit(rate(find(point, "multipath", acks, initial))?, &single))
            })
        });
        let benefit = Sorted::new(benefit.flatten());
        figure.claim(
            format!("aggregation benefit, acks {acks}"),
            "in an emulator: kernel MPTCP 0.82 / 0.75, noq 0.86 / 0.80",
            benefit.summary(),
        );
    }
    figure.plots = vec![plot];
    Ok(figure)
}

/// Fig. 6: one ack route against the other, run by run.
pub(super) fn routes(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let points = design(request)?;
    let ratios = points.iter().flat_map(|point| {
        ["0", "1"].map(|i| Some(find(point, "multipath", "own", i)? / find(point, "multipath", "fastest", i)?))
    });
    let ratios = Sorted::new(ratios.flatten());
    let mut plot = Plot::new("Acks own / acks fastest", "time ratio", "share of scenarios").y_range(0.0, 1.0);
    plot.cdf("own / fastest", ratios.values().to_vec());
    let mut figure = Figure { plots: vec![plot], ..Figure::default() };
    figure.claim("time ratio, own / fastest", "Multiflow slightly faster than MPQUIC", ratios.summary());
    figure.claim("share in which fastest is faster", "-", format!("{:.1} %", 100.0 * ratios.share(|x| x > 1.0)));
    Ok(figure)
}
