//! The puppet itself: it must be able to talk before it can misbehave.

use plait_engine::Event;

use crate::puppet::{Rig, Setup};

#[test]
fn shakes_hands_with_our_server() {
    // RFC 9000 7.3-1
    // RFC 9000 7.2-5; RFC 9001 4.9-2
    let mut rig = Rig::established_server(Setup::default());
    assert!(rig.conn().is_multipath());
    assert!(rig.events.contains(&Event::Connected));
    rig.frames([0x01]);
    assert!(rig.is_open());
}

#[test]
fn shakes_hands_with_our_client() {
    // RFC 9000 7.3-1
    let mut rig = Rig::established_client(Setup::default());
    assert!(rig.conn().is_multipath());
    assert!(rig.events.contains(&Event::Connected));
}

#[test]
fn opens_a_path_to_our_server() {
    // RFC 10069 3.1-3
    let mut rig = Rig::established_server(Setup::default());
    rig.open_path(1, "192.0.2.2:5000", true);
    assert_eq!(rig.conn().paths().ids().len(), 2);
}
