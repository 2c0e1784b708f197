//! Paths that die at an awkward moment: in the handshake, while they are validated, or one direction of each.

use std::time::Duration;

use super::{TWO, outcome};
use crate::run::outcome::End;

/// One that takes a path, or what is lost on it, away from or back at a time.
fn event(at_ms: u64, path: usize, what: &str) -> String {
    format!("[[event]]\nat_s = {}\npath = {path}\n{what}\n", at_ms as f64 / 1e3)
}

#[test]
fn a_path_that_dies_at_any_moment_of_the_handshake_leaves_the_other() {
    // `plait sim swarm --from 1001441 --seeds 1`: the end of the client's handshake was lost with the path that it left by.
    for (kind, first) in [("download", "0"), ("download", "1"), ("upload", "0"), ("upload", "1")] {
        for at_ms in (1..60).step_by(2) {
            for dies in ["state = \"down\"", "up = { loss = 1.0 }", "down = { loss = 1.0 }"] {
                let text = format!("{TWO}{}", event(at_ms, 0, dies));
                let set = [
                    ("transfer.kind", kind),
                    ("transfer.bytes", "100_000"),
                    ("endpoints.initial_path", first),
                    ("endpoints.first_path_only", "false"),
                ];
                let run = outcome(&text, &set, 1);
                let case = format!("{kind} from {first}, {dies} at {at_ms} ms: {:?}", run.elapsed);
                assert_eq!((&run.end, run.verified_bytes), (&End::Complete, 100_000), "{case}");
                // 0.08 s for the bytes, five round trips of 30 ms, and patience with a path of which no round trip is known.
                assert!(run.elapsed < Duration::from_millis(600), "{case}");
            }
        }
    }
}

#[test]
fn a_path_that_is_back_before_it_was_validated_takes_over() {
    // The first dies with the server's challenge under way; when it is back the second dies for good.
    let set = [
        ("path.0.rtt_ms", "60"),
        ("path.1.rtt_ms", "15"),
        ("path.1.rate_mbps", "5"),
        ("endpoints.first_path_only", "false"),
        ("time_limit_s", "20"),
    ];
    for kind in ["upload", "download"] {
        for at_ms in [62, 90] {
            let (down, up) = (event(at_ms, 0, "state = \"down\""), event(at_ms + 2_000, 0, "state = \"up\""));
            let text = format!("{TWO}{down}{up}{}", event(at_ms + 2_000, 1, "state = \"down\""));
            let run = outcome(&text, &[&set[..], &[("transfer.kind", kind)]].concat(), 1);
            assert_eq!((&run.end, run.verified_bytes), (&End::Complete, 2_000_000), "{kind} at {at_ms} ms");
            assert!(run.elapsed < Duration::from_secs(5), "{kind} at {at_ms} ms: {:?}", run.elapsed);
        }
    }
}

#[test]
fn a_handshake_whose_paths_all_fall_silent_goes_on_where_one_is_back() {
    // `plait sim swarm --from 7019855 --seeds 1`: the path that could not be validated was given up, and no other could be opened.
    let text = "[[path]]\nrate_mbps = 1\nrtt_ms = 300\n[[path]]\nrate_mbps = 1\n[transfer]\nkind = \"request-response\"\n\
                [endpoints]\nfirst_path_only = false\ninitial_path = 1\n";
    let (down, up) = (event(10, 1, "state = \"down\""), event(6_000, 1, "state = \"up\""));
    let run = outcome(&format!("{text}{down}{up}{}", event(500, 0, "state = \"down\"")), &[("time_limit_s", "60")], 1);
    assert_eq!(run.end, End::Complete);
    assert!(run.elapsed < Duration::from_secs(20), "{:?}", run.elapsed);
}

#[test]
fn an_ack_on_another_path_confirms_the_handshake() {
    // `plait sim swarm --from 7018699 --seeds 1`: HANDSHAKE_DONE was lost with path 0, whose data waited for it.
    let set = [
        ("path.0.rtt_ms", "2"),
        ("endpoints.first_path_only", "false"),
        ("transfer.kind", "upload"),
        ("transfer.bytes", "15_000"),
    ];
    for at_ms in 1..20 {
        let run = outcome(&format!("{TWO}{}", event(at_ms, 0, "loss = 1.0")), &set, 1);
        assert_eq!(run.end, End::Complete);
        assert!(run.elapsed < Duration::from_millis(400), "at {at_ms} ms: {:?}", run.elapsed);
    }
}

#[test]
fn half_of_each_path_is_enough() {
    // One path leads up and the other down from then on: acks of each take the other one, once the ends have found out. Over
    // RFC 10069 a server that only acknowledges may never find out.
    for (extension, kinds) in [("multipath", &["download"][..]), ("multiflow", &["upload", "download"])] {
        for kind in kinds.iter().copied() {
            for (up, down) in [(0, 1), (1, 0)] {
                let halves =
                    [event(500, up, "down = { loss = 1.0 }"), event(500, down, "up = { loss = 1.0 }")].concat();
                let set = [("transfer.kind", kind), ("endpoints.extension", extension), ("time_limit_s", "30")];
                let run = outcome(&format!("{TWO}{halves}"), &set, 1);
                let case = format!("{extension}, {kind} with path {up} up alone: {:?}", run.elapsed);
                assert_eq!((&run.end, run.verified_bytes), (&End::Complete, 2_000_000), "{case}");
                assert!(run.elapsed < Duration::from_secs(12), "{case}");
            }
        }
    }
}

#[test]
fn flows_that_are_validated_answer_for_one_that_died() {
    // The only flow that was proven dies as the others open: answers on it alone would never arrive.
    let dies = [event(45, 0, "state = \"down\""), event(145, 0, "state = \"up\""), event(145, 1, "state = \"down\"")];
    let set = [
        ("path.1.rtt_ms", "40"),
        ("endpoints.extension", "multiflow"),
        ("endpoints.initial_path", "1"),
        ("time_limit_s", "30"),
    ];
    for kind in ["upload", "download"] {
        let run = outcome(&format!("{TWO}{}", dies.concat()), &[&set[..], &[("transfer.kind", kind)]].concat(), 1);
        assert_eq!((&run.end, run.verified_bytes), (&End::Complete, 2_000_000), "{kind}: {:?}", run.elapsed);
    }
}
