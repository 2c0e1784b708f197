//! Where trace files are found: beside the scenario that names them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::files::read_text;

/// The folder of a scenario file, and what was read of its traces: each is read once, so that all runs see the same.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    folder: Option<PathBuf>,
    read: Arc<Mutex<BTreeMap<String, Arc<str>>>>,
}

impl Traces {
    /// Traces lie beside this file.
    pub fn beside(file: &Path) -> Self {
        Self { folder: file.parent().map(PathBuf::from), ..Self::default() }
    }

    /// The text of a trace.
    pub(crate) fn read(&self, name: &str) -> Result<Arc<str>, String> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = read.get(name) {
            return Ok(text.clone());
        }
        let path = self.folder.as_ref().map_or_else(|| PathBuf::from(name), |folder| folder.join(name));
        let text: Arc<str> = read_text(&path).map_err(|error| error.to_string())?.into();
        read.insert(name.to_owned(), text.clone());
        Ok(text)
    }

    /// Names and texts of all that were read, by name.
    pub(crate) fn known(&self) -> Vec<(String, Arc<str>)> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.iter().map(|(name, text)| (name.clone(), text.clone())).collect()
    }
}
