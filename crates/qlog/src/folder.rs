//! A folder that receives a file for each connection.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plait_base::observe::{Observer, ObserverFactory};
use plait_base::{ConnectionId, Side};

use crate::observer::{Birth, QlogObserver, Report};

/// Makes observers that write `<connection id>_<client|server>.sqlog` into a folder.
#[derive(Clone)]
pub struct QlogFolder {
    path: PathBuf,
    report: Option<Report>,
}

impl fmt::Debug for QlogFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QlogFolder").field("path", &self.path).finish_non_exhaustive()
    }
}

impl QlogFolder {
    /// Makes the folder where it is missing.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(path: impl AsRef<Path>) -> io::Result<Self> {
        fs::create_dir_all(&path)?;
        Ok(Self { path: path.as_ref().to_path_buf(), report: None })
    }

    /// Tells `report`, once for each connection, why its file cannot be opened or written to the end, as where the disk is full. The
    /// connection goes on without it.
    #[must_use]
    pub fn on_failure(mut self, report: impl Fn(&io::Error) + Send + Sync + 'static) -> Self {
        self.report = Some(Arc::new(report));
        self
    }

    fn open(path: &Path, id: ConnectionId, side: Side) -> io::Result<Box<dyn Write + Send>> {
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let end = if side.is_client() { "client" } else { "server" };
        let stem = if hex.is_empty() { "unknown".to_owned() } else { hex };
        let file = File::create(path.join(format!("{stem}_{end}.sqlog")))?;
        Ok(Box::new(BufWriter::new(file)))
    }
}

impl ObserverFactory for QlogFolder {
    fn observer(&self) -> Box<dyn Observer> {
        let path = self.path.clone();
        let observer = QlogObserver::at_birth(move |birth: &Birth| Self::open(&path, birth.id, birth.side));
        Box::new(observer.reporting(self.report.clone()))
    }
}
