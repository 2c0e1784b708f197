//! A certificate and its key for programs that cannot make their own.

use std::path::{Path, PathBuf};

use crate::error::LabError;

/// The name that it is made out to.
const NAME: &str = "localhost";

/// Where the certificate and the key of a run lie, PEM.
pub(super) fn files(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join("cert.pem"), folder.join("key.pem"))
}

/// Makes both.
///
/// # Errors
/// The files cannot be written.
pub(super) fn write(folder: &Path) -> Result<(), LabError> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]);
    let made = made.map_err(|error| LabError::Refused { command: "a certificate".into(), said: error.to_string() })?;
    let (cert, key) = files(folder);
    std::fs::write(&cert, made.cert.pem()).map_err(LabError::file(&cert))?;
    std::fs::write(&key, made.signing_key.serialize_pem()).map_err(LabError::file(&key))
}
