//! Reads the source of every crate as text, so that tests can hold it to the rules of the house.
//!
//! It knows nothing of any other crate: it sees files, lines, items and the paths by which files name each other.

pub mod blank;
pub mod circles;
pub mod house;
pub mod items;
pub mod modules;
pub mod public;
pub mod requirements;
mod source;

pub use source::{Room, Source, all_sources, root, sources};
