//! What the bell is made of: the standard library's. The models of `tests/api/bell.rs` put loom's in its place.

pub(super) use std::sync::atomic::{AtomicBool, Ordering, fence};
pub(super) use std::sync::{Mutex, MutexGuard, PoisonError};
