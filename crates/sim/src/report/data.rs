//! What the plots of a run show, as CSV.

use std::fmt::Write;

use plait_engine::schedule::{Decision, WaitReason};

use crate::host::decisions::{PathVerdict, Record};
use crate::run::series::Series;

/// The samples of a run, one line each; what the scheduler's decisions meant for a path is counted from the start.
pub fn series_csv(series: &Series) -> String {
    let paths = series.samples.first().map_or(0, |sample| sample.paths.len());
    let mut text = String::from("at_s,verified_bytes");
    for path in 0..paths {
        for name in ["carried_bytes", "cwnd_bytes", "in_flight_bytes", "rtt_ms", "queue_ms"] {
            let _ = write!(text, ",path{path}_{name}");
        }
        PathVerdict::ALL.iter().for_each(|verdict| {
            let _ = write!(text, ",path{path}_decisions_{}", verdict.name());
        });
    }
    for label in &series.cross {
        for name in ["bytes", "cwnd_bytes", "in_flight_bytes", "rtt_ms"] {
            let _ = write!(text, ",{label}_{name}");
        }
    }
    text.push('\n');
    for sample in &series.samples {
        let _ = write!(text, "{:.6},{}", sample.at.since_origin().as_secs_f64(), sample.verified_bytes);
        for p in &sample.paths {
            let (rtt, queue) = (p.rtt_ms, p.queue_ms);
            let _ = write!(text, ",{},{},{},{rtt:.3},{queue:.3}", p.carried_bytes, p.window_bytes, p.in_flight_bytes);
            p.verdicts.iter().for_each(|count| {
                let _ = write!(text, ",{count}");
            });
        }
        for c in &sample.cross {
            let _ = write!(text, ",{},{},{},{:.3}", c.bytes, c.window_bytes, c.in_flight_bytes, c.rtt_ms);
        }
        text.push('\n');
    }
    text
}

/// A decision in a few words.
pub(super) fn decision_text(decision: Decision) -> String {
    match decision {
        Decision::Send(id) => format!("send on {}", id.0),
        Decision::SendAlso { primary, .. } => format!("send on {} with copies", primary.0),
        Decision::Wait(WaitReason::Faster(id)) => format!("wait for {}", id.0),
        Decision::Wait(WaitReason::Busy) => "wait: all busy".into(),
        Decision::Wait(WaitReason::NoPath) => "wait: no path".into(),
    }
}

/// The scheduler's decisions, those in a row that were alike on one line; paths by their id in the protocol.
pub fn decisions_csv(record: &Record) -> String {
    let mut text = String::from("first_s,last_s,count,decision,path,verdict,rtt_ms,cwnd_bytes,in_flight_bytes\n");
    for line in &record.log {
        let (first, last) = (line.first.since_origin().as_secs_f64(), line.last.since_origin().as_secs_f64());
        for seen in &line.paths {
            let rtt = seen.rtt.map_or(String::new(), |rtt| format!("{:.3}", rtt.as_secs_f64() * 1e3));
            let _ = writeln!(
                text,
                "{first:.6},{last:.6},{},{},{},{},{rtt},{},{}",
                line.count,
                decision_text(line.decision),
                seen.path.0,
                seen.verdict.map_or("closing", PathVerdict::name),
                seen.window_bytes,
                seen.in_flight_bytes
            );
        }
    }
    if record.left_out > 0 {
        let _ = writeln!(text, "# {} further decisions were counted but are not listed", record.left_out);
    }
    text
}
