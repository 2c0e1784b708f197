//! Paths: what each sends and receives, its addresses and their validation, its connection ids, and the table of them.
//!
//! `path` knows no stream, no scheduler and no connection. A [`Path`] joins a send flow and a [`ReceiveFlow`] of one id on
//! one 4-tuple; these two know nothing of each other but by ack reports. [`Paths`] is the table: it holds every path
//! id, used or not, and speaks the frames of RFC 10069.

mod ack_frequency;
mod addresses;
mod cids;
mod feedback;
mod frame_state;
mod hosts;
mod pairing;
mod path;
pub mod policy;
mod receive;
mod reports;
mod send;
mod spin;
mod stats;
mod status;
pub mod table;
#[cfg(test)]
mod tests;

pub use ack_frequency::{AckTerms, AckWish};
pub use addresses::{
    AddressEvent, ChallengeData, FourTupleRole, Moved, Pad, PathAddresses, Validation, ValidationTimes,
};
pub use cids::{CidSource, IssuedCid};
pub use feedback::{Feedback, LostPacket};
pub use hosts::{AddressScope, Hosts, LearnedAddresses};
pub use pairing::Pairing;
pub use path::{
    Departure, Path, PathConfig, PathTimer, ProbeTimeout, TRAIN_PADDING_BYTES, TakeOver, TrainEnd, TrainPlan,
    TrainSource,
};
pub use policy::{AckCarrier, AckRoute, AckRouteFactory, PathPolicy, PathPolicyFactory, ack_route};
pub use receive::{AckNeed, AckPolicy, Eliciting, ReceiveFlow};
pub use send::{
    AckOutcome, AckReport, Built, CopyChoice, EcnMode, FlightOrder, HandshakeState, InFlight, MtuConfig, MtuSearch,
    Pacing, PacketBuilder, PacketInfo, Padding, ProbePrompt, Sealer, SendConfig, SendRoom, SendStats, TimerFired,
};
pub use spin::SpinBit;
pub use stats::PathTotals;
pub use status::PathStatus;
pub use table::{PathIds, PathRoom, PathSnapshot, Paths, PeerLimits, TableConfig, TableEvent, frame_room};
