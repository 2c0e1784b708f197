//! `plait sim` without the rest of the command: `lab run FILE SEEDS OUT|- [KEY=VALUE...]` `lab figure NAME POINTS OUT|- [KEY=VALUE...]` or `lab swarm|workers FROM COUNT OUT|-`.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use plait_sim::Policies;
use plait_sim::campaign::Shard;
use plait_sim::command::{Pictures, RunRequest, run};
use plait_sim::figures::{FigureRequest, RanWith, figure};
use plait_sim::swarm::{Population, SwarmRequest, swarm};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [what, name, count, out, sets @ ..] = &args[..] else {
        eprintln!("lab run|figure|swarm|workers NAME COUNT OUT|- [KEY=VALUE...]");
        std::process::exit(2);
    };
    let stop = AtomicBool::new(false);
    let out = (out != "-").then(|| PathBuf::from(out));
    let count: u64 = count.parse().unwrap_or(0);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let commit = "example".to_owned();
    let (policies, pictures) = (Policies::new(), Pictures::None);
    let text = if what == "run" {
        let (file, seeds, shard) = (PathBuf::from(name), count.max(1), Shard::WHOLE);
        let request = RunRequest {
            file,
            sets: sets.to_vec(),
            seeds,
            jobs,
            out,
            qlog: false,
            pcap: Vec::new(),
            pictures,
            shard,
            commit,
            policies,
        };
        run(&request, &stop, &|_| {}).map(|summary| summary.text)
    } else if what == "swarm" || what == "workers" {
        let population = if what == "workers" { Population::Workers } else { Population::Plain };
        let (from, seeds) = (name.parse().unwrap_or(0), count.max(1));
        let request = SwarmRequest { population, from, seeds, sets: sets.to_vec(), jobs, out };
        swarm(&request, &stop, &|_, _, _| {}).map(|summary| summary.text)
    } else {
        if let Some(out) = &out {
            std::fs::create_dir_all(out).expect("the folder can be made");
        }
        let points = (count > 0).then_some(count as usize);
        let progress = &|_: &str, _, _| {};
        let request = FigureRequest {
            points,
            sets: sets.to_vec(),
            jobs,
            out,
            pictures,
            commit,
            policies,
            stop: &stop,
            ran: RanWith::default(),
            progress,
        };
        figure(name, &request).map(|made| made.text())
    };
    match text {
        Ok(text) => print!("{text}"),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}
