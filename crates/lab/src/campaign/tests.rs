//! Rows and reports of figures whose runs are made up.

use std::collections::BTreeMap;
use std::time::Duration;

use plait_sim::run::network::Traffic;

use super::plan::{Company, Job};
use super::row::{self, Circumstances};
use super::*;
use crate::run::{Answer, Completion, CpuScheduling, Ran, RunFailure, Wiring, read_delays};

fn planned(setups: Vec<Setup>, names: &[&str], repetitions: usize) -> Plan {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let wanted = Wanted {
        contenders: &names,
        missing: Missing::LeftOut,
        repetitions,
        twice: false,
        sets: &[],
        scheduling: CpuScheduling::RoundRobin,
    };
    let mut plan = Plan::new(setups, &wanted, &Machine::look()).unwrap();
    // What this machine cannot run is told of, and what is told of is not in question here.
    plan.notes.clear();
    plan
}

fn ran(result: Result<Answer, RunFailure>, seconds: f64) -> Ran {
    let elapsed = Duration::from_secs_f64(seconds);
    let (traffic, lateness) = (vec![Traffic::default(); 2], Default::default());
    Ran {
        result,
        elapsed,
        traffic,
        crossed: Vec::new(),
        lateness,
        is_late: false,
        real_time: true,
        wiring: Wiring::Relay,
        scheduling: CpuScheduling::RoundRobin,
    }
}

fn answer(bytes: u64, requests: Vec<(Duration, Option<Duration>)>) -> Answer {
    let notes = BTreeMap::from([("congestion".to_owned(), "cubic".to_owned())]);
    let completion = Completion::LastPacket;
    Answer { bytes, completion, handshake: Some(Duration::from_millis(30)), requests, paths: Vec::new(), notes }
}

fn rows(plan: &Plan, of: impl Fn(&Job, &str) -> Ran) -> Vec<plait_sim::campaign::Row> {
    let row = |job: &Job| {
        let found = of(job, plan.contenders[job.contender].name());
        row::row(plan, job, "c0ffee", &found, Circumstances::default()).unwrap()
    };
    plan.jobs.iter().map(row).collect()
}

#[test]
fn rows_are_those_of_the_simulator_and_a_few_columns_more() {
    let plan = planned(setup::handover(), &["plait", "tcp"], 2);
    let ms = Duration::from_millis;
    let rows = rows(&plan, |job, name| match (name, job.repetition) {
        ("plait", _) => ran(Ok(answer(1_500, vec![(ms(0), Some(ms(20))), (ms(400), Some(ms(70)))])), 3.5),
        (_, 0) => ran(Ok(answer(750, vec![(ms(0), Some(ms(20))), (ms(400), None)])), 20.0),
        _ => ran(Err(RunFailure::TimeLimit(ms(20_000))), 20.0),
    });
    let cell = |at: usize, name: &str| rows[at].cell(name).unwrap_or("missing").to_owned();
    assert_eq!(rows[0].cells[..3].iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["run", "seed", "commit"]);
    assert_eq!(["run", "seed", "contender", "end"].map(|name| cell(1, name)), ["1", "2", "plait", "complete"]);
    assert_eq!(["seconds", "bytes", "requests"].map(|name| cell(0, name)), ["3.500000000", "1500", "2"]);
    assert_eq!(["path.1.rtt_ms", "name", "delay_max_ms"].map(|name| cell(0, name)), ["25", "handover", "70.000"]);
    assert_eq!(["end", "unanswered", "lab_congestion"].map(|name| cell(2, name)), ["unfinished", "1", "cubic"]);
    assert_eq!(["end", "error"].map(|name| cell(3, name)), ["unfinished", "time limit"]);
    assert_eq!(["lab_real_time", "lab_cpu_scheduling"].map(|name| cell(3, name)), ["true", "rr"]);
    assert_eq!(read_delays(&cell(2, "lab_delays_ms")), [(30.0, 20.0), (430.0, f64::INFINITY)]);
    let figure = report::handover(&Results::new(&plan, &rows));
    let told = |name: &str| figure.tables[0].rows.iter().find(|row| row[0] == name).unwrap().join(" ");
    // Only what was due when the path died counts: here nothing.
    assert_eq!(told("plait"), "plait 2 0 - - - -");
    assert!(told("tcp").starts_with("tcp 2 2 "), "{}", told("tcp"));
}

#[test]
fn benefits_and_ratios_follow_from_the_times() {
    let plan = planned(setup::conext("low-bdp-no-loss", 3, None), &["plait", "plait-single", "mptcp", "tcp"], 1);
    let rows = rows(&plan, |job, name| {
        // Alone 2 s over the first path and 4 s over the second; together 4/3 s is all that both can give.
        let seconds = match (name, job.initial) {
            ("plait", _) => 4.0 / 3.0,
            ("mptcp", _) => 2.0,
            (_, 0) => 2.0,
            _ => 4.0,
        };
        ran(Ok(answer(1, Vec::new())), seconds)
    });
    let results = Results::new(&plan, &rows);
    let figure = report::conext(&results);
    let ours = |what: &str| figure.claims.iter().find(|claim| claim.what.starts_with(what)).unwrap().ours.clone();
    assert!(ours("benefit, MPQUIC (plait)").starts_with("1.000 in each of 3 runs"), "{:?}", figure.claims);
    if results.has("mptcp") {
        assert!(ours("benefit, MPTCP (Linux)").starts_with("0.000 in each of 3 runs"), "{:?}", figure.claims);
        assert!(ours("time ratio, MPTCP / MPQUIC").starts_with("above 1 in 100.0 %; 1.500 in each"));
    }
    let row = &figure.tables[0].rows[0];
    assert_eq!((row[0].as_str(), row[5].as_str(), row[6].as_str()), ("MPQUIC (plait)", "6 of 6", "6 of 6"));
    assert_eq!(results.runs("plait", results.starts()[0], Company::Alone).len(), 0);
}

#[test]
fn a_later_first_byte_of_the_initial_path_is_allowed_for_and_no_more() {
    let plan = planned(setup::conext("low-bdp-no-loss", 2, None), &["plait", "plait-single"], 1);
    let rows = rows(&plan, |job, name| {
        // Alone 1 s over the first path, 5 s over the second, whose first byte comes 0.4 s later. Together from the second
        // path: of one setup 1.42 s, which the later start explains but for 2 %, of the other 1.5 s, which it does not.
        let (seconds, first_byte_ms) = match (name, job.initial) {
            ("plait", 0) => (1.0, 100),
            ("plait", _) => (if job.setup == 0 { 1.42 } else { 1.5 }, 500),
            (_, 0) => (1.0, 100),
            _ => (5.0, 500),
        };
        let mut answer = answer(1, Vec::new());
        answer.notes.insert("first_byte_ms".to_owned(), first_byte_ms.to_string());
        ran(Ok(answer), seconds)
    });
    let results = Results::new(&plan, &rows);
    let figure = report::conext(&results);
    let row = &figure.tables[0].rows[0];
    assert_eq!((row[1].as_str(), row[5].as_str(), row[6].as_str()), ("4", "2 of 4", "3 of 4"));
}
