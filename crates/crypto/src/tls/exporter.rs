//! Keying material of a session whose TLS state is given back (RFC 8446 7.5): rustls tells the secret by its key log.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use rustls::crypto::tls13::{HkdfExpander, OkmBlock};
use rustls::{KeyLog, SupportedCipherSuite, Tls13CipherSuite};

use crate::error::ExportError;

/// The exporter_master_secret, as key logs name it.
const LABEL: &str = "EXPORTER_SECRET";

thread_local! {
    /// What the handshake step under way on this thread has told.
    static TOLD: RefCell<Option<OkmBlock>> = const { RefCell::new(None) };
}

/// The key log of a server: hears the exporter's secret for [`listen`], and passes on what `log` wants.
pub(crate) struct ExporterLog {
    log: Arc<dyn KeyLog>,
}

impl ExporterLog {
    pub(crate) fn new(log: Arc<dyn KeyLog>) -> Self {
        Self { log }
    }
}

impl KeyLog for ExporterLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        if label == LABEL && secret.len() <= OkmBlock::MAX_LEN {
            TOLD.set(Some(OkmBlock::new(secret)));
        }
        if self.log.will_log(label) {
            self.log.log(label, client_random, secret);
        }
    }

    fn will_log(&self, label: &str) -> bool {
        label == LABEL || self.log.will_log(label)
    }
}

impl fmt::Debug for ExporterLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExporterLog").finish_non_exhaustive()
    }
}

/// Does a step of a handshake; with the exporter's secret where the step told an [`ExporterLog`].
pub(crate) fn listen<T>(step: impl FnOnce() -> T) -> (T, Option<OkmBlock>) {
    TOLD.take();
    let done = step();
    (done, TOLD.take())
}

/// Gives keying material.
pub(crate) struct Exporter {
    secret: OkmBlock,
    suite: &'static Tls13CipherSuite,
}

impl Exporter {
    pub(crate) fn new(secret: OkmBlock, suite: SupportedCipherSuite) -> Option<Self> {
        Some(Self { secret, suite: suite.tls13()? })
    }

    /// Fills `out`, as the session would.
    pub(crate) fn export(&self, out: &mut [u8], label: &[u8], context: &[u8]) -> Result<(), ExportError> {
        if out.is_empty() {
            return Err(ExportError);
        }
        let (hash, hkdf) = (self.suite.common.hash_provider, self.suite.hkdf_provider);
        let of_master = hkdf.expander_for_okm(&self.secret);
        let mut derived = [0; OkmBlock::MAX_LEN];
        let derived = derived.get_mut(..of_master.hash_len()).ok_or(ExportError)?;
        expand_label(&*of_master, label, hash.hash(&[]).as_ref(), derived)?;
        let of_label = hkdf.expander_for_okm(&OkmBlock::new(derived));
        expand_label(&*of_label, b"exporter", hash.hash(context).as_ref(), out)
    }
}

/// HKDF-Expand-Label (RFC 8446 7.1).
fn expand_label(expander: &dyn HkdfExpander, label: &[u8], context: &[u8], out: &mut [u8]) -> Result<(), ExportError> {
    const PREFIX: &[u8] = b"tls13 ";
    let length = u16::try_from(out.len()).map_err(|_| ExportError)?.to_be_bytes();
    let label_length = u8::try_from(PREFIX.len() + label.len()).map_err(|_| ExportError)?;
    let context_length = u8::try_from(context.len()).map_err(|_| ExportError)?;
    let info = [&length[..], &[label_length], PREFIX, label, &[context_length], context];
    expander.expand_slice(&info, out).map_err(|_| ExportError)
}
