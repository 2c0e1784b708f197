//! Scenarios as files have them: what is read, and what is refused with which words.

use std::time::Duration;

use plait_engine::config::StreamPlacement;
use plait_netsim::link::{Aqm, Jitter, Loss, Order, Rate, Service};

use super::sweep::take_sweep;
use super::{AckFrequency, CrossLoad, Direction, Endpoints, Extension, Place, Scenario, Traces, Tree};
use crate::host::app::Load;

const TWO_PATHS: &str = r#"
name = "two-paths"
seed = 1
[[path]]
rate_mbps = 10.0
rtt_ms = 20.0
queue_ms = 50.0
loss = 0.001
[[path]]
rate_mbps = 10
rtt_ms = 50
up = { rate_mbps = 1.0, delay_ms = 30.0 }
loss_model = { kind = "gilbert-elliott", to_bad = 0.01 }
[[event]]
at_s = 3.0
path = 0
loss = 1.0
[transfer]
kind = "download"
bytes = 20_000_000
[endpoints]
initial_path = 1
extension = "none"
congestion = "olia"
"#;

fn read(text: &str) -> Result<Scenario, String> {
    let tree = Tree::parse("x.toml", text).map_err(|e| e.to_string())?;
    Scenario::read(&tree, &Traces::default()).map_err(|e| e.to_string())
}

/// The endpoints of a scenario with these lines about them.
fn with_endpoints(lines: &str) -> Result<Endpoints, String> {
    let text = format!("[[path]]\nrate_mbps = 1\n[transfer]\nkind = \"download\"\n[endpoints]\n{lines}\n");
    read(&text).map(|scenario| scenario.endpoints)
}

#[test]
fn an_event_that_changes_nothing_is_refused() {
    let with = |line: &str| read(&format!("{TWO_PATHS}[[event]]\nat_s = 1\npath = 0\n{line}\n"));
    let error = with("").unwrap_err();
    assert!(error.contains("`event.1.path`: nothing happens to it; accepted: a key that changes"), "{error}");
    for line in ["loss = 0.1", "up = { rate_mbps = 1 }", "rtt_ms = 3", "interface = \"down\""] {
        assert!(with(line).is_ok(), "{line}");
    }
}

#[test]
fn every_key_arrives() {
    let scenario = read(TWO_PATHS).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.seed, scenario.paths.len()), ("two-paths", 1, 2));
    let [first, second] = &scenario.paths[..] else { panic!() };
    assert_eq!((&first.own.up.rate, first.own.down.delay), (&Rate::Fixed(10_000_000), Duration::from_millis(10)));
    assert_eq!(first.own.down.loss, Loss::Bernoulli(0.001));
    assert_eq!((&second.own.up.rate, second.own.up.delay), (&Rate::Fixed(1_000_000), Duration::from_millis(30)));
    assert_eq!(second.own.down.delay, Duration::from_millis(25));
    assert!(matches!(second.own.up.loss, Loss::GilbertElliott { .. }));
    assert_eq!(scenario.load, Load::Download { bytes: 20_000_000 });
    assert_eq!((scenario.endpoints.handshake.initial_path, scenario.endpoints.extension), (1, Extension::None));
    assert_eq!((scenario.events[0].at, scenario.events[0].place), (Duration::from_secs(3), Place(0)));
}

#[test]
fn thresholds_of_red_follow_the_queue_where_nobody_set_them() {
    let thresholds = |queue: &str, aqm: &str| {
        let text = TWO_PATHS.replace("queue_ms = 50.0", &format!("{queue}\naqm = {aqm}"));
        match read(&text).unwrap().paths[0].own.down.config(Service::Planned).aqm {
            Aqm::Red(red) => (red.min_bytes, red.max_bytes),
            other => panic!("{other:?}"),
        }
    };
    for aqm in [r#""red""#, r#"{ kind = "red" }"#, r#"{ kind = "red", weight = 0.01, drop_max = 0.5 }"#] {
        assert_eq!(thresholds("queue_bytes = 600_000", aqm), (100_000, 300_000), "{aqm}");
        assert_eq!(thresholds("queue_bytes = 0", aqm), (1, 3), "{aqm}");
        assert_eq!(thresholds("queue_packets = 40", aqm), (10_000, 30_000), "{aqm}");
        // 10 Mbit/s for 240 ms.
        assert_eq!(thresholds("queue_ms = 240", aqm), (50_000, 150_000), "{aqm}");
    }
    let both = r#"{ kind = "red", min_bytes = 7, max_bytes = 90 }"#;
    assert_eq!(thresholds("queue_ms = 50", both), (7, 90));
    // One of them says the other, whatever the queue.
    assert_eq!(thresholds("queue_bytes = 3000", r#"{ kind = "red", min_bytes = 20_000 }"#), (20_000, 60_000));
    assert_eq!(thresholds("queue_bytes = 3000", r#"{ kind = "red", max_bytes = 1 }"#), (0, 1));
}

#[test]
fn mistakes_are_named() {
    let with = |from: &str, to: &str| read(&TWO_PATHS.replace(from, to)).unwrap_err();
    let wrong = [
        (
            with("rate_mbps = 10.0\n", "rate_mbps = -3\n"),
            "x.toml:5: `path.0.rate_mbps`: -3 is out of range; accepted: 0 to 1000000 Mbit/s",
        ),
        (
            with("rtt_ms = 20.0", "rt_ms = 20.0"),
            "x.toml:6: `path.0.rt_ms`: there is no such key; accepted: aqm, corrupt",
        ),
        (with("at_s = 3.0", "at_s = -1"), "x.toml:15: `event.0.at_s`: -1 is out of range; accepted: 0 to 1000000 s"),
        (with("path = 0\n", "path = 2\n"), "x.toml:16: `event.0.path`: 2 is out of range; accepted: 0 to 1 "),
        (with("loss = 0.001", "loss = 2"), "x.toml:8: `path.0.loss`: 2 is out of range; accepted: 0 to 1"),
        (with("loss = 0.001", "trace = \"none.trace\""), "x.toml:8: `path.0.trace`"),
        (
            with("\"download\"", "\"downlaod\""),
            "x.toml:19: `transfer.kind`: `downlaod` is not known; accepted: download, upload",
        ),
        (with("bytes = 20", "bytes = \"many\" #"), "x.toml:20: `transfer.bytes`: is a string"),
        (
            with("\"olia\"", "\"reno\""),
            "x.toml:24: `endpoints.congestion`: `reno` is not known; accepted: newreno, cubic",
        ),
        (with("[transfer]", "[tranfser]"), "x.toml:18: `transfer`: is missing, and `tranfser` looks like it"),
        (with("rate_mbps = 10.0", "rate_mpbs = 10.0"), "`path.0.rate_mbps`: is missing, and `rate_mpbs` looks like it"),
        (with("rate_mbps = 10.0", "rate_mbp = 10.0"), "`path.0.rate_mbps`: is missing, and `rate_mbp` looks like it"),
        (with("rate_mbps = 10.0", "rates_mbps = 10.0"), "and `rates_mbps` looks like it"),
        (with("rate_mbps = 10.0", "rate_nbps = 10.0"), "and `rate_nbps` looks like it"),
        (with("rate_mbps = 10.0", "ratings = 10.0"), "`path.0.rate_mbps`: is missing;"),
        (with("seed = 1", "seed = "), "x.toml:3:"),
        (with("rate_mbps = 10.0\n", ""), "`path.0.rate_mbps`: is missing"),
        (with("to_bad = 0.01", "to_bad = 1.5"), "`path.1.loss_model.to_bad`: 1.5 is out of range; accepted: 0 to 1"),
    ];
    for (got, expected) in wrong {
        assert!(got.contains(expected), "{got}\nshould say\n{expected}");
    }
}

#[test]
fn settings_from_outside() {
    let mut tree = Tree::parse("x.toml", TWO_PATHS).unwrap();
    tree.set("path.0.rate_mbps", "50", "--set").unwrap();
    tree.set("path.1.down.delay_ms", "7", "--set").unwrap();
    tree.set("endpoints.scheduler", "blest", "--set").unwrap();
    let scenario = Scenario::read(&tree, &Traces::default()).unwrap();
    assert_eq!(scenario.paths[0].own.down.rate, Rate::Fixed(50_000_000));
    assert_eq!(scenario.paths[1].own.down.delay, Duration::from_millis(7));
    assert_eq!(scenario.endpoints.scheduler.name(), "blest");
    for number in ["5", "00", "01", "+1", "-0", " 1", ""] {
        let wrong = tree.set(&format!("path.{number}.loss"), "0.1", "--set").unwrap_err().to_string();
        assert!(wrong.contains(&format!("there is no `path.{number}`; accepted: path.0 to path.1")), "{wrong}");
    }
    tree.set("path.0.rate_mbps", "fast", "--set").unwrap();
    let error = Scenario::read(&tree, &Traces::default()).unwrap_err().to_string();
    assert!(error.starts_with("--set: `path.0.rate_mbps`: is a string"), "{error}");
}

#[test]
fn sweeps_multiply_lists_and_fill_spaces() {
    let sweep = |text: &str| {
        let mut tree = Tree::parse("x.toml", &format!("{TWO_PATHS}{text}")).unwrap();
        take_sweep(&mut tree).map(|sweep| sweep.points).map_err(|e| e.to_string())
    };
    let points =
        sweep("[sweep]\npath.0.rate_mbps = [1, 10]\nendpoints.scheduler = [\"minrtt\", \"blest\", \"ecf\"]").unwrap();
    assert_eq!(points.len(), 6);
    assert_eq!(
        points[1],
        [("endpoints.scheduler".into(), "\"minrtt\"".into()), ("path.0.rate_mbps".into(), "10".into())]
    );
    let points = sweep("[sweep]\nwsp = { points = 30, path.0.rtt_ms = { min = 1, max = 100, scale = \"log\" } }\nendpoints.initial_path = [0, 1]").unwrap();
    assert_eq!(points.len(), 60);
    assert_eq!(sweep("[sweep]\nwsp = { design = \"conext-low-bdp-loss\", points = 3 }").unwrap().len(), 3);
    assert_eq!(sweep("").unwrap(), [vec![]]);
    let error = sweep("[sweep]\npath.0.rate_mbps = 3").unwrap_err();
    assert!(error.contains("x.toml:26: `sweep.path.0.rate_mbps`: is a whole number; accepted: a list"), "{error}");
    let error = sweep("[sweep]\npath.0.rate_mbps = []").unwrap_err();
    assert!(error.contains("x.toml:26: `sweep.path.0.rate_mbps`: is an empty list; accepted: at least one"), "{error}");
    for again in ["1", "1.0", "1e0"] {
        let error = sweep(&format!("[sweep]\npath.0.rate_mbps = [1,\n2,\n{again}]")).unwrap_err();
        assert!(error.contains("x.toml:28: `sweep.path.0.rate_mbps`: 1"), "{error}");
        assert!(error.contains("is there twice; accepted: each value once"), "{error}");
    }
    let list = format!("{:?}", (1..=1_001).collect::<Vec<_>>());
    let error = sweep(&format!("[sweep]\npath.0.rate_mbps = {list}\npath.1.rate_mbps = {list}")).unwrap_err();
    assert!(
        error.contains("`sweep.path.1.rate_mbps`: with it the sweep has 1002001 points; accepted: at most"),
        "{error}"
    );
    assert!(sweep("[sweep]\nwsp = { points = 3 }").unwrap_err().contains("nothing to vary"));
    assert!(sweep("[sweep]\nwsp = { design = \"conext\" }").unwrap_err().contains("accepted: conext-low"));
}

#[test]
fn bursts_count_in_packets_or_in_time() {
    let loss = |model: &str| {
        let text = format!("[[path]]\nrate_mbps = 1\nloss_model = {{ {model} }}\n[transfer]\nkind = \"download\"\n");
        read(&text).map(|scenario| scenario.paths[0].own.down.loss)
    };
    let ms = Duration::from_millis;
    assert_eq!(loss("kind = \"bursts\", mean = 0.2, burst = 4"), Ok(Loss::bursts(0.2, 4.0)));
    let timed = Loss::TimedGilbertElliott { good: ms(20), bad: ms(5), loss_good: 0.0, loss_bad: 1.0 };
    assert_eq!(loss("kind = \"bursts\", mean = 0.2, burst_ms = 5"), Ok(timed));
    assert_eq!(loss("kind = \"gilbert-elliott\", good_ms = 20, bad_ms = 5"), Ok(timed));
    for mixed in
        ["kind = \"bursts\", burst = 2, burst_ms = 5", "kind = \"gilbert-elliott\", good_ms = 20, to_bad = 0.1"]
    {
        assert!(loss(mixed).is_err(), "{mixed}");
    }
    let error = loss("kind = \"bursts\", mean = 0.9, burst = 4").unwrap_err();
    assert!(error.contains("bursts of 4 cannot lose a share of 0.9; accepted: a share of at most 0.800"), "{error}");
    assert!(loss("kind = \"bursts\", mean = 0.8, burst = 4").is_ok());
}

#[test]
fn nonces_of_uniflows_need_uniflows() {
    let ends = |lines: &str| with_endpoints(lines).map(|ends| ends.wishes.uniflow_nonces);
    assert_eq!(ends("extension = \"multiflow\"\n"), Ok(false));
    assert_eq!(ends("extension = \"multiflow\"\nuniflow_nonces = true\n"), Ok(true));
    let error = ends("uniflow_nonces = true\n").unwrap_err();
    assert!(error.contains("`endpoints.uniflow_nonces`") && error.contains("extension = \"multiflow\""), "{error}");
}

#[test]
fn acks_are_asked_for_within_bounds() {
    let ends = |lines: &str| with_endpoints(lines).map(|ends| ends.wishes.ack_frequency);
    assert_eq!(ends(""), Ok(None));
    assert_eq!(ends("ack_frequency_packets = 25\n"), Ok(Some(AckFrequency { packets: 25, delay: None })));
    let delay = Some(Duration::from_millis(40));
    assert_eq!(
        ends("ack_frequency_packets = 1\nack_frequency_delay_ms = 40\n"),
        Ok(Some(AckFrequency { packets: 1, delay }))
    );
    for (lines, key, accepted) in [
        ("ack_frequency_packets = 0\n", "ack_frequency_packets", "1 to 1048576"),
        ("ack_frequency_packets = 2000000\n", "ack_frequency_packets", "1 to 1048576"),
        ("ack_frequency_packets = 2\nack_frequency_delay_ms = 0.5\n", "ack_frequency_delay_ms", "1 to 16383"),
        ("ack_frequency_delay_ms = 5\n", "ack_frequency_delay_ms", "it with ack_frequency_packets"),
    ] {
        let error = ends(lines).unwrap_err();
        assert!(error.contains(&format!("`endpoints.{key}`")) && error.contains(accepted), "{error}");
    }
}

#[test]
fn hosts_take_their_time_or_have_workers() {
    let ends = |lines: &str| with_endpoints(lines).map(|ends| ends.turn);
    assert_eq!(ends(""), Ok(Duration::ZERO));
    assert_eq!(ends("turn_ms = 0.08\n"), Ok(Duration::from_micros(80)));
    let error = ends("turn_ms = 0.08\nworkers = 2\n").unwrap_err();
    assert!(error.contains("`endpoints.turn_ms`") && error.contains("it without workers"), "{error}");
    assert!(ends("turn_ms = 2000\n").is_err());
}

#[test]
fn jitter_keeps_order_breaks_it_or_drifts() {
    let config = |kind: &str| {
        let text = format!("[[path]]\nrate_mbps = 1\njitter_ms = 3\n{kind}[transfer]\nkind = \"download\"\n");
        read(&text).map(|scenario| scenario.paths[0].own.down.config(Service::Planned))
    };
    let of = |kind: &str| config(kind).map(|config| (config.jitter, config.order)).unwrap();
    let spread = Duration::from_millis(3);
    assert_eq!(of(""), (Jitter::Uniform(spread), Order::Kept));
    assert_eq!(of("jitter_kind = \"ordered\"\n"), of(""));
    assert_eq!(of("jitter_kind = \"free\"\n"), (Jitter::Uniform(spread), Order::Free));
    assert_eq!(of("jitter_kind = \"drift\"\n"), (Jitter::Drift(spread), Order::Kept));
    let error = config("jitter_kind = \"slow\"\n").unwrap_err();
    assert!(error.contains("`path.0.jitter_kind`") && error.contains("ordered, free, drift"), "{error}");
}

#[test]
fn the_format_that_is_promised_is_read() {
    let text = r#"
name = "two-paths"
seed = 1
[[path]]                     # one table a path; up/down override the symmetric values
rate_mbps = 10.0
rtt_ms = 20.0                # split evenly unless up.delay_ms / down.delay_ms are given
queue_ms = 50.0              # or queue_bytes; drop-tail unless aqm = "codel"
loss = 0.001                 # Bernoulli; or loss_model = {kind="gilbert-elliott", ...}
jitter_ms = 0.0
trace = "lte-driving.trace"  # mahimahi format, optional, instead of rate_mbps
up   = { rate_mbps = 1.0, delay_ms = 30.0 }
[[event]]                    # at a time, change any link value
at_s = 3.0
path = 0
loss = 1.0
[transfer]                   # kind = "download" | "upload" | "request-response" | "bulk-for"
kind = "download"
bytes = 20_000_000
[endpoints]
initial_path = 0
extension = "multipath"
scheduler = "minrtt"
congestion = "olia"
ack_path = "fastest"
[sweep]                      # optional: cartesian, or wsp = {points = 253, ...}
"#;
    let folder = std::env::temp_dir().join(format!("plait-sim-format-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("lte-driving.trace"), "1\n2\n4\n").unwrap();
    let mut tree = Tree::parse("x.toml", text).unwrap();
    assert_eq!(take_sweep(&mut tree).unwrap().points, [vec![]]);
    let scenario = Scenario::read(&tree, &Traces::beside(&folder.join("x.toml"))).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let own = &scenario.paths[0].own;
    // The trace takes the place of the path's rate; a direction's own rate stands.
    assert!(matches!(own.down.rate, Rate::Trace(_)), "{:?}", own.down.rate);
    assert_eq!(own.up.rate, Rate::Fixed(1_000_000));
    assert_eq!((own.up.delay, own.down.delay), (Duration::from_millis(30), Duration::from_millis(10)));
}

#[test]
fn numbers_that_do_not_fit_are_called_so() {
    let error = |text: &str| {
        let rest = TWO_PATHS.replace("seed = ", "time_limit_s = ");
        let tree = Tree::parse("x.toml", &format!("{text}\n{rest}")).unwrap();
        Scenario::read(&tree, &Traces::default()).unwrap_err().to_string()
    };
    let text = error("seed = 9223372036854775808");
    assert!(text.starts_with("x.toml:1: `seed`: is too large a number; accepted: 0 to 9223372036854775807"), "{text}");
    let text = error("sed = 1");
    assert!(text.contains("there is no such key") && text.contains("sweep"), "{text}");
}

/// What `key` of the endpoints is, for a scenario that says `name` there.
fn chosen(key: &str, name: &str) -> Result<String, String> {
    let endpoints = with_endpoints(&format!("{key} = \"{name}\""))?;
    let name = match key {
        "scheduler" => endpoints.scheduler.name(),
        "congestion" => endpoints.congestion.unwrap().name(),
        "ack_path" => endpoints.ack_path,
        "path_policy" => endpoints.path_policy,
        _ => endpoints.reinjection,
    };
    Ok(name.to_owned())
}

#[test]
fn streams_are_pooled_unless_they_are_pinned() {
    let ends = |line: &str| with_endpoints(line).map(|ends| ends.placement);
    assert_eq!(ends(""), Ok(StreamPlacement::Pooled));
    assert_eq!(ends("placement = \"pinned\""), Ok(StreamPlacement::Pinned));
    assert!(ends("placement = \"shard\"").unwrap_err().ends_with("accepted: pooled, pinned"));
}

#[test]
fn every_policy_that_is_registered_has_a_word() {
    let kinds: [(&str, &[&str]); 5] = [
        ("scheduler", &crate::SCHEDULERS),
        ("congestion", &crate::CONTROLLERS),
        ("ack_path", &crate::ACK_PATHS),
        ("reinjection", &crate::REINJECTIONS),
        ("path_policy", &crate::PATH_POLICIES),
    ];
    for (key, names) in kinds {
        for name in names {
            assert_eq!(chosen(key, name).as_deref(), Ok(*name), "{key}");
        }
        let error = chosen(key, "nobody").unwrap_err();
        assert!(error.ends_with(&format!("accepted: {}", names.join(", "))), "{error}");
    }
}

const SHARED: &str = r#"
[[link]]
name = "bottleneck"
rate_mbps = 10
delay_ms = 5
[[link]]
name = "core"
rate_mbps = 1000
delay_ms = 1
[[path]]
delay_ms = 2
via = ["bottleneck", "core"]
[[path]]
rate_mbps = 20
via = "bottleneck"
[[cross]]
kind = "on-off"
link = "core"
rate_mbps = 4
on_s = [0.5, 2]
off_s = 1
[[cross]]
kind = "flow"
name = "backup"
via = ["bottleneck"]
congestion = "newreno"
start_s = 1.5
direction = "up"
[[event]]
at_s = 2
link = "core"
rate_mbps = 5
[transfer]
kind = "upload"
"#;

#[test]
fn links_are_shared_by_name() {
    let scenario = read(SHARED).unwrap();
    assert_eq!(scenario.way(0), [Place(0), Place(2), Place(3)]);
    assert_eq!(scenario.way(1), [Place(1), Place(2)]);
    assert_eq!(scenario.duplexes().count(), 4);
    assert_eq!(
        (&scenario.paths[0].own.up.rate, scenario.paths[0].own.up.delay),
        (&Rate::Unlimited, Duration::from_millis(2))
    );
    assert_eq!(scenario.paths[1].own.up.delay, Duration::ZERO);
    assert_eq!(scenario.events[0].place, Place(3));
    let [packets, flow] = &scenario.cross[..] else { panic!() };
    assert!(matches!(packets.load, CrossLoad::Packets(p) if p.on_off == Some(((0.5, 2.0), (1.0, 1.0)))));
    assert!(matches!(flow.load, CrossLoad::Flow { congestion: "newreno", bytes: None, .. }));
    assert_eq!((&*packets.label, &*flow.label), ("cross0", "cross_backup"));
    assert_eq!((flow.direction, flow.start, &flow.via), (Direction::Up, Duration::from_millis(1500), &vec![Place(2)]));
}

#[test]
fn mistakes_in_shared_links_are_named() {
    let with = |from: &str, to: &str| read(&SHARED.replace(from, to)).unwrap_err();
    let wrong = [
        (
            with("\"core\"]", "\"cor\"]"),
            "x.toml:12: `path.0.via`: `cor` is not the name of a link; accepted: bottleneck, core",
        ),
        (
            with("\"core\"]", "\"bottleneck\"]"),
            "x.toml:12: `path.0.via`: `bottleneck` is there twice; accepted: each link once",
        ),
        (with("name = \"core\"", "name = \"bottleneck\""), "x.toml:7: `link.1.name`: `bottleneck` cannot be the name"),
        (with("rate_mbps = 1000\n", ""), "`link.1.rate_mbps`: is missing"),
        (
            with("kind = \"flow\"", "kind = \"tcp\""),
            "`cross.1.kind`: `tcp` is not known; accepted: constant, on-off, flow",
        ),
        (
            with("name = \"backup\"", "name = \"a b\""),
            "`cross.1.name`: `a b` is no name; accepted: a name that no other",
        ),
        (
            with("kind = \"on-off\"", "kind = \"on-off\"\nname = \"backup\""),
            "`cross.1.name`: is that of another source",
        ),
        (with("rate_mbps = 4\n", ""), "`cross.0.rate_mbps`: is missing; accepted: 0.001 to"),
        (with("on_s = [0.5, 2]", "on_s = [2, 0.5]"), "`cross.0.on_s`: 2 is above 0.5"),
        (with("link = \"core\"\nrate_mbps = 4", "rate_mbps = 4"), "`cross.0.path`: is missing; accepted: 0 to 1"),
        (with("start_s = 1.5", "start_s = -1"), "`cross.1.start_s`: -1 is out of range; accepted: 0 to 1000000 s"),
        (with("start_s = 1.5", "start_s = 1.5\nstop_s = 1"), "`cross.1.stop_s`: is not after the start"),
        (
            with("at_s = 2\n", "at_s = 2\npath = 0\n"),
            "`event.0.link`: there is a path too; accepted: one of path and link",
        ),
    ];
    for (got, expected) in wrong {
        assert!(got.contains(expected), "{got}\nshould say\n{expected}");
    }
}

#[test]
fn each_word_of_queue_management_is_a_plan_of_its_own() {
    let plan = |aqm: &str| {
        let text = TWO_PATHS.replacen("queue_ms = 50.0", &format!("queue_ms = 50.0\naqm = {aqm}"), 1);
        read(&text).map(|scenario| scenario.paths[0].own.down.aqm)
    };
    let unknown = plan(r#""no-such-word""#).expect_err("nobody knows this word");
    let words: Vec<&str> = unknown.rsplit("accepted: ").next().unwrap().split(", ").collect();
    assert!(words.len() >= 4 && words[0] == "drop-tail", "{unknown}");
    let mut plans = Vec::new();
    for word in words {
        let plain = plan(&format!(r#""{word}""#)).unwrap();
        let table = plan(&format!(r#"{{ kind = "{word}" }}"#)).unwrap();
        assert_eq!(std::mem::discriminant(&plain), std::mem::discriminant(&table), "{word}");
        assert!(!plans.contains(&plain), "`{word}` is read as another word: {plain:?}");
        plans.push(plain);
    }
}
