//! Which paths a connection wants: facts about addresses and paths in, wishes out. And where acks travel: `ack_route`.

pub mod ack_route;
mod fullmesh;
mod manual;

use std::fmt::Debug;
use std::net::SocketAddr;

use plait_base::observe::PathState;
use plait_base::{CloseCode, FourTuple, Instant, PathId};

use crate::status::PathStatus;

pub use ack_route::{AckCarrier, AckRoute, AckRouteFactory};
pub(crate) use fullmesh::FullMesh;
pub use manual::Manual;

/// A path as a policy sees it; closing ones are not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathFact {
    /// The path id.
    pub id: PathId,
    /// Its addresses now.
    pub tuple: FourTuple,
    /// State as the table sees it.
    pub state: PathState,
}

/// Which end opens what the policy may wish for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opener {
    /// We do: clients open paths (RFC 10069 3), both ends bind their own uniflows (Multiflow).
    Us,
    /// The peer does.
    Peer,
}

/// What a policy decides from.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// When it is asked.
    pub now: Instant,
    /// Who opens paths here; wishes to open one are for nothing where the peer does.
    pub opener: Opener,
    /// Addresses of ours to send from, each with the port of its socket.
    pub local: &'a [SocketAddr],
    /// The peer's addresses: the handshake's first, then announced ones.
    pub peer: &'a [SocketAddr],
    /// Paths that are open or being validated.
    pub paths: &'a [PathFact],
    /// Further paths that limits allow.
    pub room: usize,
    /// Further validations that may begin now.
    pub validations: usize,
}

/// What a policy wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Open a path between these addresses.
    Open {
        /// The addresses of the new path.
        tuple: FourTuple,
        /// What to advise the peer about it.
        status: PathStatus,
    },
    /// End a path.
    Abandon {
        /// Id of the path.
        id: PathId,
        /// With which code.
        code: CloseCode,
    },
}

/// Whether a policy opens paths of its own accord when addresses come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressUse {
    /// It does, and gives up those whose address went.
    #[default]
    OpensPaths,
    /// It does not: the connection moves a path whose own address is gone to another, and path 0 to an address that the
    /// server prefers.
    LeavesPaths,
}

/// Decides which paths a connection opens and ends.
pub trait PathPolicy: Send + Debug {
    /// Its name in configurations and results.
    fn name(&self) -> &'static str;

    /// Told all facts whenever they change or [`Self::deadline`] passed; adds wishes.
    fn decide(&mut self, facts: &Facts<'_>, wishes: &mut Vec<Wish>);

    /// A path between these addresses could not be opened or was ended.
    fn on_ended(&mut self, _now: Instant, _route: FourTuple, _code: CloseCode) {}

    /// Whether it opens paths by itself when addresses come.
    fn address_use(&self) -> AddressUse {
        AddressUse::OpensPaths
    }

    /// When the policy wants to decide again though no fact changed.
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// Makes one policy for each connection.
pub trait PathPolicyFactory: Send + Sync + Debug {
    /// Name of the policy that it makes.
    fn name(&self) -> &'static str;

    /// A fresh policy.
    fn build(&self) -> Box<dyn PathPolicy>;
}

plait_base::policies! {
    dyn PathPolicyFactory, default "manual";
    "fullmesh" => FullMesh::default(),
    "manual" => Manual,
}

#[cfg(test)]
mod tests;
