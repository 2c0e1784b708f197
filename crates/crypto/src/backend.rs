//! The cryptographic library underneath: aws-lc-rs by default, ring where that feature alone is chosen.

#[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
compile_error!("plait-crypto needs the feature `aws-lc-rs` or `ring`");

#[cfg(feature = "aws-lc-rs")]
pub(crate) use aws_lc_rs::{aead, hmac};
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
pub(crate) use ring::{aead, hmac};

#[cfg(feature = "aws-lc-rs")]
pub(crate) use rustls::crypto::aws_lc_rs as tls;
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
pub(crate) use rustls::crypto::ring as tls;
