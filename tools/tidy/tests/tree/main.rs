//! What can be counted and read in this tree.

use std::sync::LazyLock;

use plait_tidy::{Source, all_sources};

mod events;
mod house;
mod programs;
mod requirements;
mod settings;

/// Every source file, read once for all tests.
static ALL: LazyLock<Vec<Source>> = LazyLock::new(all_sources);
