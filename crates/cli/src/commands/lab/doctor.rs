//! `plait lab doctor`: what this machine can do, and how exact its links are.

use std::sync::atomic::AtomicBool;

use plait_lab::doctor::{self, Accuracy, Finding};
use serde_json::{Value, json};

use super::args::LabDoctorArgs;
use crate::error::CliError;
use crate::output::table::Table;
use crate::output::{eprint_line, print_json, print_line};
use crate::units::rounded;

/// Looks and measures.
pub(super) fn run(args: LabDoctorArgs, stop: &AtomicBool) -> Result<(), CliError> {
    let findings = doctor::look();
    let for_people = !args.show.is_json();
    if for_people {
        findings.iter().try_for_each(|finding| print_line(&line(finding)))?;
    }
    let mut measured = Vec::new();
    if !args.quick {
        let measuring = doctor::measure(stop, |accuracy| {
            if for_people {
                eprint_line(&format!("measured {}", rate(accuracy)));
            }
            measured.push(*accuracy);
        });
        measuring?;
    }
    if for_people && measured.is_empty() {
        return Ok(());
    }
    if for_people {
        return table(&measured).lines().iter().try_for_each(|line| print_line(line));
    }
    let findings: Vec<Value> = findings.iter().map(object).collect();
    let accuracy: Vec<Value> = measured.iter().map(figures).collect();
    print_json(&json!({
        "command": "lab doctor", "ok": true, "findings": findings, "accuracy": accuracy, "error": null,
    }))
}

fn line(finding: &Finding) -> String {
    match &finding.found {
        Ok(found) => format!("{:<10} {:<16} {found}", finding.kind, finding.name),
        Err(missing) => format!("{:<10} {:<16} no: {missing}", finding.kind, finding.name),
    }
}

fn object(finding: &Finding) -> Value {
    let (ok, text) = match &finding.found {
        Ok(text) => (true, text),
        Err(text) => (false, text),
    };
    json!({ "kind": finding.kind, "name": finding.name, "ok": ok, "found": text })
}

fn rate(accuracy: &Accuracy) -> String {
    match accuracy.paths {
        1 => format!("{} Mbit/s", accuracy.rate_mbps),
        paths => format!("{paths} x {} Mbit/s", accuracy.rate_mbps),
    }
}

fn table(measured: &[Accuracy]) -> Table {
    let heading =
        ["link", "packets", "rate", "added p50 ms", "p99", "most", "jitter", "loss", "astray", "loop p99 ms", ""];
    let mut table = Table::new(&heading);
    for accuracy in measured {
        let ms = |seconds: f64| format!("{:.3}", seconds * 1e3);
        let percent = |share: f64| format!("{:+.3} %", share * 100.0);
        let [p50, p99, most] = accuracy.added_s.map(ms);
        table.row(vec![
            rate(accuracy),
            accuracy.packets.to_string(),
            percent(accuracy.rate_error),
            p50,
            p99,
            most,
            ms(accuracy.jitter_s),
            percent(accuracy.loss_error),
            accuracy.astray.to_string(),
            ms(accuracy.late_p99_s),
            if accuracy.is_good { "good" } else { "too far off" }.to_owned(),
        ]);
    }
    table
}

fn figures(accuracy: &Accuracy) -> Value {
    let ms = |seconds: f64| rounded(seconds * 1e3, 4);
    let [p50, p99, most] = accuracy.added_s.map(ms);
    json!({
        "rate_mbps": accuracy.rate_mbps, "paths": accuracy.paths, "packets": accuracy.packets,
        "rate_error": rounded(accuracy.rate_error, 7), "added_p50_ms": p50, "added_p99_ms": p99, "added_max_ms": most,
        "jitter_ms": ms(accuracy.jitter_s), "loss_error": rounded(accuracy.loss_error, 5), "astray": accuracy.astray,
        "late_p99_ms": ms(accuracy.late_p99_s), "good": accuracy.is_good,
    })
}
