//! A connection whose paths are served by others, each on a thread of its own: lent by value, given back by value.
//!
//! [`Coordinator`] is the connection with some of its paths on loan. [`LentPath`] is such a path in the hands of whoever serves
//! it: it seals and opens packets, takes in acks and finds losses by the very methods that the connection calls. It does no more
//! than a quiet, established path needs; for all else it goes back first. The two tell each other [`ToPath`] and [`FromPath`],
//! values that any queue may carry, as slowly as it likes, in order.
//!
//! ```text
//!   application ---- Coordinator -- ToPath: leases, bundles, acks, recall --> LentPath ---- socket
//!                        |     <-- FromPath: stream data, packets, fates --      |
//!                        +---- lend / take_back: the path itself ----------------+
//! ```

mod coordinator;
mod handing_out;
mod lent;
mod lent_receive;
mod lent_send;
mod messages;
mod taking_back;

pub use coordinator::Coordinator;
pub use lent::{LentPath, ReturnReason};
pub use messages::{FromPath, ToPath};
