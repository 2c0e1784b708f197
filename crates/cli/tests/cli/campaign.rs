//! Campaigns as a user runs them: killed or interrupted in the middle, gone on with, refused to another program's results;
//! figures and pictures.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const SCENARIO: &str = r#"
name = "kill"
[[path]]
rate_mbps = 10
rtt_ms = 20
loss = 0.01
[[path]]
rate_mbps = 5
rtt_ms = 30
[transfer]
kind = "download"
bytes = 150_000
[sweep]
endpoints.scheduler = ["minrtt", "round-robin"]
"#;
/// Rows of the campaign.
const RUNS: usize = 120;

fn plait(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plait"));
    command.args(args).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

fn output(args: &[&str]) -> Output {
    plait(args).output().expect("the command runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Rows that are whole in the journal of a campaign.
fn kept(folder: &Path) -> usize {
    let journal = fs::read_to_string(folder.join("journal.csv")).unwrap_or_default();
    journal.lines().filter(|line| line.ends_with(",#") && !line.starts_with("run,")).count()
}

/// Starts the campaign and waits until some of its rows are there.
fn started(args: &[&str], folder: &Path) -> Child {
    let mut child = plait(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    while kept(folder) < 5 {
        assert!(child.try_wait().expect("it can be asked").is_none(), "it ended before it was stopped");
        std::thread::yield_now();
    }
    child
}

#[test]
fn a_killed_campaign_goes_on_and_ends_like_one_that_never_was() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("kill.toml");
    fs::write(&file, SCENARIO).unwrap();
    let (whole, torn) = (home.path().join("whole"), home.path().join("torn"));
    let run = |out: &Path, jobs: &str| {
        let (file, out) = (file.to_string_lossy().into_owned(), out.to_string_lossy().into_owned());
        ["sim", "run", &file, "--seeds", "60", "--jobs", jobs, "--out", &out].map(str::to_owned)
    };
    let done = output(&run(&whole, "2").each_ref().map(String::as_str));
    assert!(done.status.success(), "{}", text(&done.stderr));

    // Killed without a word: what was written stays, and a torn line is done again.
    let args = run(&torn, "1");
    let args = args.each_ref().map(String::as_str);
    let mut child = started(&args, &torn);
    child.kill().unwrap();
    child.wait().unwrap();
    let after_kill = kept(&torn);
    assert!((5..RUNS).contains(&after_kill), "{after_kill}");
    let journal = torn.join("journal.csv");
    let bytes = fs::read(&journal).unwrap();
    fs::write(&journal, &bytes[..bytes.len() - 40]).unwrap();

    // Ctrl-C ends it between two runs and says how to go on.
    #[cfg(unix)]
    {
        let mut child = plait(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        while kept(&torn) < after_kill + 3 {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
            std::thread::yield_now();
        }
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(1), "{}", text(&ended.stderr));
        assert!(text(&ended.stderr).contains("the same command goes on from there"), "{}", text(&ended.stderr));
        assert!(kept(&torn) < RUNS && !torn.join("runs.csv").exists());
    }

    let before = kept(&torn);
    let resumed = output(&args);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    assert_eq!(fs::read(whole.join("runs.csv")).unwrap(), fs::read(torn.join("runs.csv")).unwrap());
    assert!(kept(&torn) >= RUNS && kept(&torn) <= RUNS + 1 && before > after_kill, "no run was done twice");

    // The same folder with other inputs, or with rows of another program, is refused.
    let other = output(&[&args[..], &["--set", "path.0.loss=0.02"]].concat());
    assert_eq!(other.status.code(), Some(1));
    assert!(text(&other.stderr).contains("results of another campaign or commit"), "{}", text(&other.stderr));
    let stamped = fs::read_to_string(&journal).unwrap().replacen("commit ", "commit other-", 1);
    fs::write(&journal, stamped).unwrap();
    assert_eq!(output(&args).status.code(), Some(1));
}

#[test]
fn results_in_one_folder_belong_together() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("one.toml");
    fs::write(&file, SCENARIO.split("[sweep]").next().unwrap()).unwrap();
    let file = file.to_string_lossy().into_owned();
    let folder = |name: &str| home.path().join(name).to_string_lossy().into_owned();
    let (one, many, parts) = (folder("one"), folder("many"), folder("parts"));
    let run = |more: &[&str]| output(&[&["sim", "run", &file], more].concat());
    let rows = |path: &Path| fs::read_to_string(path).unwrap().lines().count().saturating_sub(2);
    assert!(run(&["--out", &one]).status.success() && run(&["--out", &many, "--seeds", "2"]).status.success());
    for (folder, more) in [(&one, &["--seeds", "2"][..]), (&many, &[]), (&one, &["--set", "seed=2"])] {
        let refused = run(&[&["--out", folder], more].concat());
        assert_eq!(refused.status.code(), Some(1));
        assert!(text(&refused.stderr).contains("choose another folder"), "{}", text(&refused.stderr));
    }
    assert_eq!((rows(&Path::new(&one).join("runs.csv")), rows(&Path::new(&many).join("runs.csv"))), (1, 2));

    // Of a scenario with one run, one shard has it.
    let shards = ["1/2", "2/2"].map(|shard| run(&["--out", &parts, "--shard", shard]));
    assert!(shards.iter().all(|shard| shard.status.success()), "{}", text(&shards[1].stderr));
    let files = ["runs-1-of-2.csv", "runs-2-of-2.csv"].map(|name| Path::new(&parts).join(name));
    assert_eq!(files.each_ref().map(|file| rows(file)), [1, 0]);
    assert_eq!(run(&["--out", &parts, "--seeds", "2"]).status.code(), Some(1), "parts of another campaign are there");
    let [first, second] = files.map(|file| file.to_string_lossy().into_owned());
    let merged = folder("merged.csv");
    let done = output(&["sim", "merge", &first, &second, "-o", &merged]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(fs::read(&merged).unwrap(), fs::read(Path::new(&one).join("runs.csv")).unwrap());

    // Rows that are there already are run again for traces that are not.
    let logged = run(&["--out", &many, "--seeds", "2", "--qlog"]);
    assert!(logged.status.success(), "{}", text(&logged.stderr));
    for seed in [1, 2] {
        for end in ["client", "server"] {
            let name = format!("qlog/run-{}-seed-{seed}/{end}.sqlog", seed - 1);
            assert!(fs::metadata(Path::new(&many).join(&name)).unwrap().len() > 1000, "{name}");
        }
    }
    let again = run(&["--out", &many, "--seeds", "2", "--qlog", "--json-stream"]);
    assert_eq!(text(&again.stdout).lines().count(), 1, "nothing was left to do");
}

#[test]
fn programs_read_one_object_whatever_happens() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("wrong.toml");
    fs::write(&file, SCENARIO.replace("loss = 0.01", "lost = 0.01")).unwrap();
    let failed = output(&["sim", "run", file.to_str().unwrap(), "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!((failed.status.code(), &told["ok"], &told["command"]), (Some(2), &false.into(), &"sim run".into()));
    assert!(told["error"].as_str().unwrap().contains("`path.0.lost`: there is no such key"), "{told}");
    let failed = output(&["sim", "figure", "nofig", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!((failed.status.code(), &told["ok"], &told["command"]), (Some(2), &false.into(), &"sim figure".into()));

    fs::write(&file, SCENARIO.replace("\"kill\"", "\"1e5\"\nseed = 9007199254740993")).unwrap();
    let done = output(&["sim", "run", file.to_str().unwrap(), "--json-stream", "--jobs", "1"]);
    let lines: Vec<serde_json::Value> =
        text(&done.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "two runs and the result");
    assert_eq!((&lines[0]["event"], &lines[1]["done"], &lines[1]["total"]), (&"progress".into(), &2.into(), &2.into()));
    let told = &lines[2];
    assert_eq!((&told["ok"], &told["error"]), (&true.into(), &serde_json::Value::Null));
    let run = &told["runs"][0];
    assert_eq!((&run["name"], &run["seed"]), (&"1e5".into(), &9_007_199_254_740_993_u64.into()));
    assert_eq!((&run["path.0.rate_mbps"], &run["transfer.bytes"]), (&10.0.into(), &150_000.into()));
    assert_eq!((&run["error"], &run["endpoints.duplicate_until_rtt"]), (&serde_json::Value::Null, &true.into()));
    assert!(run["path0_packets_lost"].is_u64() && run["path0_rtt_ms"].is_f64(), "{run}");
}

#[test]
fn rows_have_every_input_and_outcome() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("rows.toml");
    fs::write(&file, SCENARIO).unwrap();
    let done = output(&["sim", "run", file.to_str().unwrap(), "--json", "--set", "path.1.queue_ms=40"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let row = summary["runs"][1].as_object().unwrap();
    let columns = [
        "run seed commit name path.0.rate_mbps path.0.rtt_ms path.0.loss path.1.queue_ms transfer.kind transfer.bytes",
        "endpoints.scheduler endpoints.congestion endpoints.ack_path endpoints.extension endpoints.initial_path",
        "endpoints.protection end error seconds bytes goodput_mbps handshake_ms first_byte_ms stalls faults digest",
        "path0_sent_bytes path0_packets_lost path0_rtt_ms path1_cwnd_bytes path1_down_bytes path1_active_ms",
    ];
    for column in columns.iter().flat_map(|names| names.split(' ')) {
        assert!(row.contains_key(column), "{column} is not among {:?}", row.keys().collect::<Vec<_>>());
    }
    assert_eq!(row["endpoints.scheduler"], "round-robin");
    assert!(row["commit"].as_str().unwrap().len() > 16);
}

#[test]
fn figures_leave_claims_to_paste_and_pictures() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("figures");
    let out_name = out.to_string_lossy().into_owned();
    let done = output(&[
        "sim",
        "figure",
        "ns3-fig9",
        "ns3-fig11",
        "--points",
        "1",
        "--set",
        "transfer.bytes=200000",
        "--out",
        &out_name,
        "--png",
        "--json",
    ]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let claims = summary["figures"][0]["claims"].as_array().unwrap();
    assert!(
        claims.iter().all(|claim| claim["published"].is_string() && claim["here"].is_string()) && claims.len() >= 10
    );
    assert!(!summary["figures"][1]["notes"].as_array().unwrap().is_empty());
    let markdown = fs::read_to_string(out.join("claims.md")).unwrap();
    let head = "| figure | of what | published | others' code, elsewhere | asked for | here |\n|---|---|---|---|---|---|\n| `ns3-fig9` | ";
    assert!(markdown.starts_with(head), "{markdown}");
    let picture = fs::read(out.join("ns3-fig9-01-stable-as-run.png")).unwrap();
    assert_eq!(&picture[..4], b"\x89PNG");
    let none = output(&["sim", "figure", "all"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("--out DIR"), "{}", text(&none.stderr));
}

#[test]
fn figures_are_written_into_a_document_between_their_marks() {
    let home = tempfile::tempdir().unwrap();
    let page = home.path().join("page.md");
    let figure = |page: &Path| {
        let name = page.to_string_lossy().into_owned();
        let one = ["sim", "figure", "ns3-fig8", "--points", "1", "--set", "transfer.seconds=2", "--into", &name];
        output(&one)
    };
    let text_of = |page: &Path| fs::read_to_string(page).unwrap();
    for (before, problem) in [(None, "No such file"), (Some("# Nothing\n"), "no line `<!-- figure ns3-fig8 -->`")] {
        before.inspect(|before| fs::write(&page, before).unwrap());
        let refused = figure(&page);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(problem), "{}", text(&refused.stderr));
    }
    fs::write(&page, "# Windows\n\n<!-- figure ns3-fig8 -->\nold\n<!-- end ns3-fig8 -->\n\nAfter.\n").unwrap();
    let done = figure(&page);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let made = text_of(&page);
    assert!(made.contains("`plait sim figure ns3-fig8 --points 1 --set transfer.seconds=2`"), "{made}");
    assert!(made.starts_with("# Windows\n") && made.ends_with("\n\nAfter.\n") && !made.contains("old"), "{made}");
    assert!(figure(&page).status.success());
    assert_eq!(text_of(&page), made, "the same runs, the same page");
}
