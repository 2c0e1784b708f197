//! The plait command.
#![allow(dead_code)]

mod args;
mod clock;
mod fail;
mod http;
mod local;
mod meant;
mod measure;
mod output;
mod relay;
mod tls;
mod units;
fn main() {}
