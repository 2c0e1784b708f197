//! A writer that keeps what was written, for tests and examples.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes in memory; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    /// What was written so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The records so far, without their separators.
    pub fn records(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.bytes()).into_owned();
        text.split('\x1e').skip(1).map(|record| record.trim_end().to_owned()).collect()
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
