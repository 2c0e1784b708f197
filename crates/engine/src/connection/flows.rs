//! A path of this connection: the generic path with this engine's two flows.

use plait_flow::{ReceiveFlow, SendFlow};

/// A path with its sender and its receiver.
pub(crate) type Path = plait_path::Path<SendFlow, ReceiveFlow>;
/// All path ids of the connection.
pub(crate) type Paths = plait_path::PathTable<SendFlow, ReceiveFlow>;
/// One path id.
pub(crate) type Slot = plait_path::table::Slot<SendFlow, ReceiveFlow>;
