//! One test for each public setter, of the setter's name: what is set shows in packets, or in when they leave.
//!
//! `tools/tidy/tests/tree/settings.rs` fails when a setter has none.

mod client;
mod endpoint;
mod mtu;
mod paths;
mod recovery;
mod server;
mod streams;
mod transport;

use plait_base::Side;
use plait_engine::TransportConfig;
use plait_wire::TransportParameters;

use crate::puppet::{Rig, Setup};

/// What our server announces, read by its peer out of the handshake.
fn announced_by(setup: Setup) -> TransportParameters {
    let mut rig = Rig::server(setup);
    rig.say_handshake();
    let params = rig.peer.tls.as_ref().unwrap().peer_params().unwrap();
    TransportParameters::decode(params, Side::Server).unwrap()
}

pub(crate) fn announced(change: impl FnOnce(&mut TransportConfig)) -> TransportParameters {
    announced_by(with(change))
}

/// The usual set-up with another transport.
fn with(change: impl FnOnce(&mut TransportConfig)) -> Setup {
    let mut setup = Setup::default();
    change(&mut setup.transport);
    setup
}

/// The same against a peer without multipath.
fn single(change: impl FnOnce(&mut TransportConfig)) -> Setup {
    let mut setup = Setup::single_path();
    change(&mut setup.transport);
    setup
}
