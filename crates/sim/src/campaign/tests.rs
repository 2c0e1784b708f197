//! Campaigns: the same files on any number of threads, after an interruption, and from shards.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::row::{csv_line, split_csv};
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
        assert!(matches!(error, CampaignError::Interrupted { done: 4, total: 12, kept: true }), "{error}");
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

/// A file says how many runs there are: no other row is taken, and none without end is waited for.
#[test]
fn rows_beyond_the_campaign_are_not_taken() {
    let (home, out) = (folder("beyond"), folder("beyond-out"));
    std::fs::create_dir_all(&home).unwrap();
    let file = home.join("journal.csv");
    let stamp = "# plait sim, campaign 0000000000000001 of 2 runs, commit abc";
    let refused = |rows: &str| {
        std::fs::write(&file, format!("{stamp}\nrun,seed,commit\n{rows}")).unwrap();
        merge::merge(&[&file], &out).unwrap_err().to_string()
    };
    assert!(refused("0,1,abc\n2,3,abc\n").contains("run 2 is beyond the 2 runs"));
    assert!(refused("0,1,abc\n1,2,abc\n1,2,abc\n").contains("run 1 is beyond the 2 runs"));
    assert!(refused("0,1,abc\n0,1,abc\n").contains("run 0 is there twice"));
    assert!(refused("1,2,abc\n").contains("run 0 is in none"));
    let endless = merge::merge(&[Path::new("/dev/zero")], &out).unwrap_err().to_string();
    assert!(endless.contains("/dev/zero: a line of more than 64 MiB"), "{endless}");

    let rows = "run,seed,commit,#\n0,1,abc,#\n7,8,abc,#\n1,2,abc,#\n1,2";
    std::fs::write(&file, format!("{stamp}\n{rows}")).unwrap();
    let store = Store::with_stamp(&home, Store::stamp_in(&home).unwrap(), Shard::WHOLE).unwrap();
    assert_eq!(store.load().unwrap().into_keys().collect::<Vec<_>>(), [0, 1]);
}

/// A named link that nothing goes through is a slip, unless some point of the sweep uses it.
#[test]
fn links_that_nothing_goes_through_are_refused() {
    let plan = |more: &str| {
        let text = TEXT.replace("[transfer]", "[[link]]\nname = \"core\"\nrate_mbps = 5\n[transfer]");
        let tree = Tree::parse("x.toml", &format!("{text}{more}")).unwrap();
        Campaign::plan(tree, Traces::default(), 1).map_err(|error| error.to_string())
    };
    let told =
        "x.toml:11: `link.0.name`: no path and no cross traffic goes through `core`; accepted: the `via` of a path";
    for more in
        ["", "[[event]]\nat_s = 1\nlink = \"core\"\nloss = 0.1\n", "[[rule]]\nlink = \"core\"\naction = \"drop\"\n"]
    {
        let error = plan(more).unwrap_err();
        assert!(error.starts_with(told), "{error}");
    }
    let flow = "[[cross]]\nkind = \"flow\"\nlink = \"core\"\n";
    for more in ["path.0.via = [\"core\", []]\n", flow, &flow.replace("link", "via")] {
        assert!(plan(more).is_ok(), "{more}");
    }
}

/// Points whose settings are tables bring columns that other points lack: each cell stands under its own name, in one
/// file and in one put together from shards.
#[test]
fn rows_of_different_columns_stay_aligned() {
    let text = TEXT.replace(
        "path.0.rate_mbps = [5, 20]",
        "path.0.aqm = [\"codel\", { kind = \"red\", weight = 0.002 }, \"drop-tail\"]\n\
         transfer = [{ kind = \"upload\", bytes = 50_000 }, { kind = \"bulk-for\", seconds = 0.2 }]",
    );
    let campaign = Campaign::plan(Tree::parse("x.toml", &text).unwrap(), Traces::default(), 1).unwrap();
    assert_eq!(campaign.jobs.len(), 12);
    let (home, stop) = (folder("columns"), AtomicBool::new(false));
    let write = |shard: Shard| {
        let store = Store::open(&home.join(shard.index.to_string()), &campaign, "abc", shard).unwrap();
        let rows = campaign.run(&Doing { shard, ..doing(2, Some(&store), &stop) }).unwrap();
        (store.write(&rows).unwrap(), rows)
    };
    let (whole, rows) = write(Shard::WHOLE);
    let read = merge::read(&whole).unwrap().1;
    for (row, written) in rows.iter().zip(&read) {
        assert_eq!(written.cells.len(), read[0].cells.len());
        for (name, value) in &written.cells {
            assert_eq!(value, row.cell(name).unwrap_or(""), "{name} of run {}", row.index);
        }
    }
    assert!(rows[0].cell("path.0.aqm.weight").is_none() && rows[0].cell("path.0.aqm") == Some("codel"));
    let mut parts: Vec<PathBuf> = (0..5).map(|index| write(Shard { index, count: 5 }).0).collect();
    parts.reverse();
    let merged = home.join("merged.csv");
    assert_eq!(merge::merge(&parts, &merged).unwrap(), 12);
    assert_eq!(std::fs::read_to_string(&merged).unwrap(), std::fs::read_to_string(&whole).unwrap());

    // A part whose columns somebody moved about: cells go by name there too.
    let text = std::fs::read_to_string(&parts[0]).unwrap();
    let (stamp, rest) = text.split_once('\n').unwrap();
    let turned = rest.lines().map(|line| csv_line(split_csv(line).iter().rev().map(String::as_str)) + "\n");
    std::fs::write(&parts[0], format!("{stamp}\n{}", turned.collect::<String>())).unwrap();
    assert_eq!(merge::merge(&parts, &merged).unwrap(), 12);
    let merged = merge::read(&merged).unwrap().1;
    for (row, written) in rows.iter().zip(&merged) {
        assert!(written.cells.iter().all(|(name, value)| value == row.cell(name).unwrap_or("")), "run {}", row.index);
    }
}

#[test]
fn results_belong_to_the_traces_that_they_were_made_with() {
    let home = folder("traces");
    std::fs::create_dir_all(&home).unwrap();
    let text = TEXT.replace("rate_mbps = 10\n", "trace = \"t\"\n").replace("path.0.rate_mbps = [5, 20]\n", "");
    let stamp = |trace: &str| {
        std::fs::write(home.join("t"), trace).unwrap();
        let tree = Tree::parse("x.toml", &text).unwrap();
        let campaign = Campaign::plan(tree, Traces::beside(&home.join("x.toml")), 1).unwrap();
        // What was planned is what runs, even where the file changes in between.
        std::fs::write(home.join("t"), "nonsense").unwrap();
        assert!(campaign.scenario(&campaign.jobs[0]).is_ok());
        super::store::stamp(&campaign, "abc")
    };
    assert_eq!(stamp("1\n2\n3\n"), stamp("1\n2\n3\n"));
    assert_ne!(stamp("1\n2\n3\n"), stamp("1\n3\n3\n"));
}

#[test]
fn faults_of_a_sweep_name_their_line_and_seeds_their_room() {
    let plan = |text: &str, seeds| {
        let tree = Tree::parse("x.toml", text).unwrap();
        Campaign::plan(tree, Traces::default(), seeds).map(|campaign| campaign.jobs).map_err(|error| error.to_string())
    };
    let error = plan(&TEXT.replace("[5, 20]", "[5,\n -20]"), 1).unwrap_err();
    assert!(error.starts_with("x.toml:15: `path.0.rate_mbps`: -20 is out of range; accepted: 0 to"), "{error}");
    let range = "wsp = { points = 3, path.0.loss = { min = 2, max = 3 } }";
    let error = plan(&TEXT.replace("path.0.rate_mbps = [5, 20]", range), 1).unwrap_err();
    assert!(error.starts_with("x.toml:14: `path.0.loss`: 2."), "{error}");
    let last = format!("seed = 9223372036854775806\n{TEXT}");
    assert_eq!(plan(&last, 2).unwrap()[1].seed, i64::MAX as u64);
    let error = plan(&last, 3).unwrap_err();
    assert!(error.contains("x.toml:1: `seed`") && error.contains("accepted: 0 to 9223372036854775805"), "{error}");
    // A list of all runs is kept: it is refused before it fills the memory.
    let error = plan(TEXT, 5_000_000).unwrap_err();
    assert!(error.contains("5000000 seeds of each of 4 points are more than 10000000 runs"), "{error}");
}

#[test]
fn rows_of_another_commit_are_not_taken_in() {
    let (campaign, stop) = (campaign(), AtomicBool::new(false));
    let home = folder("commits");
    let store = Store::open(&home, &campaign, "abc", Shard::WHOLE).unwrap();
    let rows = campaign.run(&doing(1, Some(&store), &stop)).unwrap();
    let file = store.write(&rows).unwrap();
    let journal = home.join("journal.csv");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, text.replacen(",abc,", ",abd,", 1)).unwrap();
    assert!(store.load().unwrap_err().to_string().contains("run 0 of commit abd"));
    // Bytes that are no text are a torn line.
    std::fs::write(&journal, [text.as_bytes(), b"run,\xff,#\n"].concat()).unwrap();
    assert_eq!(store.load().unwrap().len(), 12);
    std::fs::write(&journal, "# plait").unwrap();
    let error = Store::open(&home, &campaign, "abc", Shard::WHOLE).unwrap_err().to_string();
    assert!(error.contains("remove it, or choose another folder"), "{error}");
    std::fs::write(&journal, "").unwrap();
    assert_eq!(Store::open(&home, &campaign, "abc", Shard::WHOLE).unwrap().load().unwrap().len(), 0);

    let refused = |text: String, expected: &str| {
        let other = home.join("other.csv");
        std::fs::write(&other, text).unwrap();
        let error = merge::merge(&[&other], &home.join("out.csv")).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let text = std::fs::read_to_string(&file).unwrap();
    refused(text.replacen(",abc,", ",abd,", 1), "run 0 of commit abd");
    refused(text.replacen("of 12 runs", "of 11 runs", 1), "run 11 is beyond the 11 runs");
    refused(text.replacen("of 12 runs", "of many", 1), "does not say how many");
    refused(text.replacen("run,seed,", "run,run,", 1), "a column is there twice");
    assert!(merge::merge(&[&file], &file).unwrap_err().to_string().contains("write to another file"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn the_congestion_control_in_effect_is_named() {
    let named = |set: &str| {
        let mut tree = Tree::parse("x.toml", TEXT).unwrap();
        if let Some((key, value)) = set.split_once('=') {
            tree.set(key, value, "--set").unwrap();
        }
        let campaign = Campaign::plan(tree, Traces::default(), 1).unwrap();
        let stop = AtomicBool::new(false);
        let row = campaign.run(&doing(1, None, &stop)).unwrap().remove(0);
        let cell = |name: &str| row.cell(name).unwrap().to_owned();
        (cell("endpoints.congestion"), cell("digest"))
    };
    let usual = named("");
    assert_eq!((usual.0.as_str(), &usual.1), ("auto", &named("endpoints.congestion=auto").1));
    let alone = named("endpoints.extension=none");
    assert_eq!(alone.0, "cubic");
}

#[test]
fn shards_by_name() {
    assert_eq!("2/8".parse(), Ok(Shard { index: 1, count: 8 }));
    for wrong in ["0/3", "4/3", "x", "1", "1/0"] {
        assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
    }
}
