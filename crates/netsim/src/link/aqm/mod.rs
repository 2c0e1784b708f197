//! Active queue management: CoDel on leaving, RED on entering, FQ-CoDel by flow.

mod codel;
mod fq;
mod red;

pub(crate) use codel::CoDel;
pub use codel::CoDelConfig;
pub(crate) use fq::FlowQueues;
pub use fq::FqCoDelConfig;
pub(crate) use red::Red;
pub use red::RedConfig;

/// What queue management does with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
    /// Lets it be.
    Pass,
    /// Marks it CE, or drops it where it cannot be marked.
    Signal,
    /// Drops it, whatever it can carry.
    Drop,
}
