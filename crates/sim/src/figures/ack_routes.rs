//! What a path takes of its own queue when acknowledgements come home another way.
//!
//! A controller that grew by the RTT of its acknowledgements would grow faster than a flow beside it, whose own come back
//! slowly. So each share stands next to that of a connection with this path alone, in the same place with the same seeds.

use crate::campaign::Row;
use crate::command::CommandError;
use crate::plot::Plot;
use crate::stats::Sorted;

use super::claim::Reference;
use super::fairness::{JITTER_MS, flow, path};
use super::{Figure, FigureRequest, rows};

/// Seeds of each setting. A share has a standard deviation of 0.19 over seeds, and the median of one row is held against that of
/// another: with 72 of each their ratio errs by 0.04.
const SEEDS: u64 = 72;
/// How long each run lasts.
const SECONDS: f64 = 60.0;
/// Controllers with the flows beside them.
const CONTROLLERS: [(&str, &str); 2] = [("cubic", "cubic"), ("newreno", "newreno")];
const QUEUES: [&str; 3] = ["drop-tail", "red", "codel"];
/// RTT of the path with the flow beside it and of the other one, which has a link of its own, ms.
const RTTS_MS: [[f64; 2]; 2] = [[70.0, 10.0], [150.0, 20.0]];
/// A path takes no more than this part of what it takes alone, in the median (its 95 % interval).
const SHARE_MAX: f64 = 1.1;

/// One path alone, or both with acknowledgements by this route.
const WAYS: [(&str, &str); 3] =
    [("alone", "extension = \"none\""), ("own", "ack_path = \"own\""), ("fastest", "ack_path = \"fastest\"")];

/// A queue of 20 Mbit/s with a flow, and a second path beside it.
#[derive(Clone, Copy)]
struct Place {
    controller: &'static str,
    beside: &'static str,
    aqm: &'static str,
    rtts_ms: [f64; 2],
}

impl Place {
    fn scenario(self, endpoints: &str) -> String {
        let Self { controller, beside, aqm, rtts_ms: [shared, free] } = self;
        let (path, cross) = (path("bottleneck", 0, JITTER_MS), flow(beside, "bottleneck", 0, JITTER_MS));
        format!(
            "name = \"ack-routes\"\n[[link]]\nname = \"bottleneck\"\nrate_mbps = 20\ndelay_ms = {:.1}\nqueue_ms = 60\n\
             aqm = \"{aqm}\"\n{path}\
             [[path]]\nrate_mbps = 20\nrtt_ms = {free:.1}\nqueue_ms = 60\n{cross}[transfer]\nkind = \"bulk-for\"\n\
             seconds = {SECONDS:.1}\n[endpoints]\ncongestion = \"{controller}\"\nprotection = \"null\"\n{endpoints}\n",
            (shared - 10.0) / 2.0,
        )
    }

    fn shares(self, request: &FigureRequest<'_>, (way, endpoints): (&str, &str)) -> Result<Vec<f64>, CommandError> {
        let Self { controller, aqm, rtts_ms: [shared, free], .. } = self;
        let seeds = request.seeds(SEEDS);
        let name = format!("ack-routes-{controller}-{aqm}-{shared}-{free}-{way}");
        let rows = rows(request, &name, &self.scenario(endpoints), seeds)?;
        Ok(rows.iter().filter_map(share).collect())
    }
}

/// Bytes by the shared path over those of the flow beside it.
fn share(row: &Row) -> Option<f64> {
    Some(row.number("path0_down_bytes")? / row.number("cross0_bytes")?)
}

/// The figure, and a gate on the shares of both ack routes over that of the path alone.
pub(super) fn ack_routes(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let mut figure = Figure::default();
    for (controller, beside) in CONTROLLERS {
        let title = format!("{controller}: share of a queue over that of the path alone, by the route of acks");
        let mut plot = Plot::new(title, "", "times");
        for aqm in QUEUES {
            for rtts_ms in RTTS_MS {
                let place = Place { controller, beside, aqm, rtts_ms };
                let [alone, own, fastest] = WAYS.map(|way| place.shares(request, way));
                let alone = Sorted::new(alone?);
                let [shared, free] = rtts_ms;
                let mut cells = vec![format!("alone {:.2}", alone.median().unwrap_or(f64::NAN))];
                for (way, shares) in [("own", own?), ("fastest", fastest?)] {
                    let parts = Sorted::new(shares.into_iter().map(|share| share / alone.median().unwrap_or(f64::NAN)));
                    figure.failed |= super::fairness::is_unfair(&parts, SHARE_MAX);
                    plot.boxed(format!("{way}, {aqm}, {shared} ms"), parts.values().to_vec());
                    cells.push(format!("{way} {}: {}", parts.summary(), super::fairness::verdict(&parts, SHARE_MAX)));
                }
                figure.claim(
                    format!("{controller}, {aqm}, {shared} ms beside {free} ms"),
                    Reference::asked_for(format!("at most {SHARE_MAX} of the path alone")),
                    cells.join("; "),
                );
            }
        }
        figure.plots.push(plot);
    }
    Ok(figure)
}
