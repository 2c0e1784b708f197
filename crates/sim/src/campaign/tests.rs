//! Campaigns: the same files on any number of threads, after an interruption, and from shards.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::store::StoreError;
use super::{Campaign, CampaignError, Doing, Row, Shard, Store, merge};
use crate::scenario::{Traces, Tree};

const TEXT: &str = r#"
name = "small"
[[path]]
rate_mbps = 10
rtt_ms = 20
loss = 0.01
[[path]]
rate_mbps = 5
rtt_ms = 30
[transfer]
kind = "download"
bytes = 100_000
[sweep]
path.0.rate_mbps = [5, 20]
endpoints.initial_path = [0, 1]
"#;

fn campaign() -> Campaign {
    Campaign::plan(Tree::parse("x.toml", TEXT).unwrap(), Traces::default(), 3).unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("plait-sim-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn doing<'a>(threads: usize, store: Option<&'a Store>, stop: &'a AtomicBool) -> Doing<'a> {
    Doing { threads, shard: Shard::WHOLE, commit: "abc", stop, qlog: None, store, progress: &|_, _| {} }
}

#[test]
fn threads_change_nothing() {
    let campaign = campaign();
    assert_eq!(campaign.jobs.len(), 12);
    let stop = AtomicBool::new(false);
    let text = |threads| {
        let store = Store::open(&folder(&format!("t{threads}")), &campaign, "abc", Shard::WHOLE).unwrap();
        let rows = campaign.run(&doing(threads, Some(&store), &stop)).unwrap();
        assert!(rows.iter().all(Row::is_complete));
        std::fs::read_to_string(store.write(&rows).unwrap()).unwrap()
    };
    let (one, two) = (text(1), text(2));
    assert_eq!(one, two);
    assert_eq!(one.lines().count(), 14);
}

#[test]
fn interrupted_campaigns_go_on_and_shards_merge() {
    let campaign = campaign();
    let (home, stop) = (folder("resume"), AtomicBool::new(false));
    let whole = campaign.run(&doing(2, None, &stop)).unwrap();
    {
        let store = Store::open(&home, &campaign, "abc", Shard::WHOLE).unwrap();
        let count = AtomicUsize::new(0);
        let progress = |_: usize, _: usize| {
            if count.fetch_add(1, Ordering::Relaxed) == 3 {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let doing = Doing { progress: &progress, ..doing(1, Some(&store), &stop) };
        let error = campaign.run(&doing).unwrap_err();
        assert!(matches!(error, CampaignError::Interrupted { done: 4, total: 12 }), "{error}");
    }
    stop.store(false, Ordering::Relaxed);
    let store = Store::open(&home, &campaign, "abc", Shard::WHOLE).unwrap();
    assert_eq!(store.load().unwrap().len(), 4);
    assert_eq!(campaign.run(&doing(1, Some(&store), &stop)).unwrap(), whole);
    let other = Store::open(&home, &campaign, "def", Shard::WHOLE);
    assert!(matches!(other, Err(StoreError::Foreign { .. })));

    let parts = folder("shards");
    let files: Vec<PathBuf> = (0..3)
        .map(|index| {
            let shard = Shard { index, count: 3 };
            let store = Store::open(&parts.join(index.to_string()), &campaign, "abc", shard).unwrap();
            let rows = campaign.run(&Doing { shard, ..doing(1, Some(&store), &stop) }).unwrap();
            assert_eq!(rows.len(), 4);
            store.write(&rows).unwrap()
        })
        .collect();
    let out = home.join("merged.csv");
    assert_eq!(merge::merge(&files, &out).unwrap(), 12);
    assert_eq!(merge::read(&out).unwrap().1, whole);
    assert!(merge::merge(&files[1..], &out).unwrap_err().to_string().contains("run 0 is in none"));
}

#[test]
fn shards_by_name() {
    assert_eq!("2/8".parse(), Ok(Shard { index: 1, count: 8 }));
    for wrong in ["0/3", "4/3", "x", "1", "1/0"] {
        assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
    }
}
