//! Streams, flow control and application datagrams.

use plait_base::Dir;
use plait_engine::TransportConfig;
use plait_engine::stream::{Order, Overflow};
use plait_wire::Frame;

use super::{announced, with};
use crate::puppet::{Rig, ms};
use crate::violations::{raw, stream};

/// By how much the limit of a stream leads what was read, at most, while the peer sends and the application reads all.
fn widest_window(change: impl FnOnce(&mut TransportConfig)) -> u64 {
    let mut rig = super::recovery::with_rtt(with(change));
    let mut widest = 0;
    for piece in 0..60 {
        let read = 1_000 * (piece + 1);
        rig.frames(stream(2, 1_000 * piece, false, &[7; 1_000]));
        if let Some(id) = rig.conn().streams().accept(Dir::Uni) {
            assert_eq!(id.0, 2);
        }
        rig.conn().recv_stream(plait_base::StreamId(2)).read(2_000, Order::Ordered).unwrap();
        rig.pass(ms(2));
        rig.ack_all();
        let limit = |f: &Frame<'_>| if let Frame::MaxStreamData(m) = f { Some(m.limit) } else { None };
        let latest = rig.seen.iter().flat_map(|s| s.frames().iter().filter_map(limit).collect::<Vec<_>>()).max();
        widest = widest.max(latest.unwrap_or(0).saturating_sub(read));
    }
    assert!(rig.is_open());
    widest
}

#[test]
fn max_concurrent_bidi_streams() {
    assert_eq!(announced(|t| _ = t.max_concurrent_bidi_streams(7)).limits.max_streams_bidi, 7);
}

#[test]
fn max_concurrent_uni_streams() {
    assert_eq!(announced(|t| _ = t.max_concurrent_uni_streams(7)).limits.max_streams_uni, 7);
}

#[test]
fn stream_receive_window() {
    let limits = announced(|t| _ = t.auto_tune_windows(false).stream_receive_window(5_000)).limits;
    let all = [limits.max_stream_data_bidi_local, limits.max_stream_data_bidi_remote, limits.max_stream_data_uni];
    assert_eq!(all, [5_000; 3]);
}

#[test]
fn max_stream_receive_window() {
    let limits = announced(|t| _ = t.max_stream_receive_window(5_000)).limits;
    assert_eq!((limits.max_stream_data_bidi_remote, limits.max_stream_data_uni), (5_000, 5_000));
    assert!(widest_window(|t| _ = t.max_stream_receive_window(5_000)) <= 5_000);
}

#[test]
fn receive_window() {
    assert_eq!(announced(|t| _ = t.auto_tune_windows(false).receive_window(9_000)).limits.max_data, 9_000);
}

#[test]
fn max_receive_window() {
    assert_eq!(announced(|t| _ = t.max_receive_window(9_000)).limits.max_data, 9_000);
}

#[test]
fn auto_tune_windows() {
    let windows = |t: &mut TransportConfig| _ = t.stream_receive_window(2_000).max_stream_receive_window(50_000);
    let fixed = widest_window(|t| {
        windows(t);
        t.auto_tune_windows(false);
    });
    assert!((1..=2_000).contains(&fixed), "{fixed}");
    assert!(widest_window(windows) > 2_000);
}

#[test]
fn send_window() {
    let mut rig = Rig::established_server(with(|t| _ = t.send_window(3_000)));
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    assert_eq!(rig.conn().send_stream(id).write(&[1; 10_000]).unwrap(), 3_000);
    rig.pump();
    let sent = |f: &Frame<'_>| if let Frame::Stream(s) = f { s.data.len() } else { 0 };
    let bytes: usize = rig.seen.iter().map(|s| s.frames().iter().map(sent).sum::<usize>()).sum();
    assert_eq!(bytes, 3_000);
}

#[test]
fn datagram_receive_buffer_size() {
    assert_eq!(announced(|t| _ = t.datagram_receive_buffer_size(None)).max_datagram_frame_bytes, 0);
    assert_eq!(announced(|t| _ = t.datagram_receive_buffer_size(Some(500))).max_datagram_frame_bytes, 500);
    let mut rig = Rig::established_server(with(|t| _ = t.datagram_receive_buffer_size(Some(500))));
    (0..20u8).for_each(|i| rig.frames(raw(&[0x31, 100], &[i; 100])));
    let kept: Vec<u8> = std::iter::from_fn(|| rig.conn().datagrams().recv()).map(|d| d[0]).collect();
    assert!((1..=5).contains(&kept.len()) && kept.last() == Some(&19), "{kept:?}");
}

#[test]
fn datagram_send_buffer_size() {
    let mut rig = Rig::established_server(with(|t| _ = t.datagram_send_buffer_size(1_000)));
    let mut queued = 0;
    while queued < 100 && rig.conn().datagrams().send(vec![1; 300].into(), Overflow::Refuse).is_ok() {
        queued += 1;
    }
    assert!((1..=3).contains(&queued), "{queued}");
    rig.pump();
    assert_eq!(rig.count(|f| matches!(f, Frame::Datagram(_))), queued);
}
