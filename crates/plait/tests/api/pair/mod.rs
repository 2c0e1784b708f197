//! Two connected ends over loopback.
#![allow(dead_code)]

include!("../../../doc/pair.in");
