//! One direction of one path: the sender with its ledger, timers and window, and the receiver with its acks.
//!
//! A [`SendFlow`] and a [`ReceiveFlow`] know nothing of each other: what joins them is an ack report. Neither knows
//! connections, streams or addresses.

pub mod feedback;
pub mod receive;
pub mod send;

pub use feedback::{Feedback, LostPacket};
pub use receive::{AckNeed, AckPolicy, Eliciting, ReceiveFlow};
pub use send::builder::{Built, PacketBuilder, Padding, Sealer};
pub use send::{
    AckOutcome, AckReport, Activity, EcnMode, EcnState, HandshakeState, InFlight, KeepRtt, Order, Pacing, ProbeGate,
    Room, RttEstimator, SendConfig, SendFlow, SendStats, SentPacket, TimerFired,
};
