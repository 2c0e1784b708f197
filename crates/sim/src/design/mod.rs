//! Designs of experiments: points that fill a space of network parameters evenly, and those of the papers.

pub mod named;
pub mod profiles;
pub mod shapes;
pub mod wsp;

pub use named::{Design, NAMES, by_name, conext_corner};
pub use profiles::{PROFILES, Profile};
pub use shapes::{Drawn, SHAPES, Shape};
pub use wsp::wsp;
