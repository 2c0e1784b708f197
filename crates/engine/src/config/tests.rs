//! Settings stay within their ranges.

use std::time::Duration;

use plait_base::PathId;
use plait_base::units::VARINT_MAX;

use super::*;

#[test]
fn values_outside_their_range_move_to_its_end() {
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(u64::MAX)
        .packet_threshold(0)
        .time_threshold(f32::NAN)
        .initial_mtu(1)
        .min_mtu(u16::MAX)
        .max_ack_delay(Duration::from_secs(1_000))
        .ack_delay_exponent(200)
        .max_idle_timeout(Some(Duration::ZERO))
        .initial_rtt(Duration::ZERO);
    assert_eq!(config.streams.max_bidi, 1 << 60);
    assert_eq!((config.recovery.packet_threshold, config.recovery.time_threshold), (3, 1.125));
    assert_eq!((config.mtu.initial, config.mtu.min, config.mtu.first()), (1_200, 65_527, 65_527));
    assert_eq!((config.ack.max_delay, config.ack.delay_exponent), (Duration::from_millis(16_383), 20));
    assert_eq!(config.timing.max_idle_timeout, Some(Duration::from_millis(1)));
    assert_eq!(config.recovery.initial_rtt, Duration::from_millis(1));
}

#[test]
fn the_policies_of_the_start_are_the_defaults_of_their_tables() {
    let config = TransportConfig::default();
    let named = [config.scheduler.name(), config.paths.reinjection.name(), config.controller.name()];
    assert_eq!(named, [plait_schedule::DEFAULT, plait_schedule::reinject::DEFAULT, plait_congestion::DEFAULT]);
    let many = config.multipath_controller.as_ref().map(|factory| factory.name());
    assert_eq!(many, Some(plait_congestion::MULTIPATH_DEFAULT));
    let paths = [config.paths.ack_route.name(), config.paths.policy.name()];
    assert_eq!(paths, [plait_path::ack_route::DEFAULT, plait_path::policy::DEFAULT]);
}

#[test]
fn a_window_starts_no_higher_than_it_may_grow() {
    let mut config = TransportConfig::default();
    config.stream_receive_window(100 << 20).receive_window(u64::MAX);
    let windows = |config: &TransportConfig| {
        [config.streams.stream_window, config.streams.window].map(|window| (window.first_bytes, window.max_bytes))
    };
    assert_eq!(windows(&config), [(100 << 20, 100 << 20), (VARINT_MAX, VARINT_MAX)]);
    config.max_stream_receive_window(5_000).max_receive_window(6_000);
    assert_eq!(windows(&config), [(5_000, 5_000), (6_000, 6_000)]);
    // With a maximum of its own the window may grow, whichever was set first.
    config.stream_receive_window(1_000).receive_window(9_000);
    assert_eq!(windows(&config), [(1_000, 5_000), (9_000, 9_000)]);
    // Without one it stays.
    let mut config = TransportConfig::default();
    config.stream_receive_window(64 << 10).receive_window(128 << 10);
    assert_eq!(windows(&config), [(64 << 10, 64 << 10), (128 << 10, 128 << 10)]);
}

#[test]
fn path_count_becomes_the_highest_path_id() {
    // RFC 10069 2.1-1: the parameter is the highest id, and some peers take 0 for "no multipath"
    let mut config = TransportConfig::default();
    assert_eq!(config.paths.initial_max_path_id(), Some(PathId(7)));
    let mut announced = |count| config.max_concurrent_multipath_paths(count).paths.initial_max_path_id();
    assert_eq!([announced(0), announced(1)], [None, None]);
    assert_eq!([announced(2), announced(1_000)], [Some(PathId(1)), Some(PathId(63))]);
}

#[test]
fn switches_take_booleans() {
    let mut config = TransportConfig::default();
    config.pacing(false).ecn(Switch::Off).allow_spin(true);
    assert!(!config.recovery.pacing.is_on() && !config.wire.ecn.is_on() && config.wire.spin.is_on());
}
