//! Where trace files are found: beside the scenario that names them.

use std::path::PathBuf;

/// The folder of a scenario file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traces {
    folder: Option<PathBuf>,
}

impl Traces {
    /// Traces lie beside this file.
    pub fn beside(file: &std::path::Path) -> Self {
        Self { folder: file.parent().map(PathBuf::from) }
    }

    /// The text of a trace.
    pub(crate) fn read(&self, name: &str) -> Result<String, String> {
        let path = self.folder.as_ref().map_or_else(|| PathBuf::from(name), |folder| folder.join(name));
        std::fs::read_to_string(&path).map_err(|error| error.to_string())
    }
}
