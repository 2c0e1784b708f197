//! The laboratory in virtual time: scenarios, campaigns, oracles, figures and reports over the plait engine.
pub mod design;
pub mod host;
pub mod run;
pub mod scenario;
