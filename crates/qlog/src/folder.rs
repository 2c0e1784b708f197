//! A folder that receives a file for each connection.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use plait_base::observe::{Observer, ObserverFactory};
use plait_base::{ConnectionId, Side};

use crate::observer::{Birth, QlogObserver};

/// Makes observers that write `<connection id>_<client|server>.sqlog` into a folder.
#[derive(Clone, Debug)]
pub struct QlogFolder(PathBuf);

impl QlogFolder {
    /// Makes the folder where it is missing.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(path: impl AsRef<Path>) -> io::Result<Self> {
        fs::create_dir_all(&path)?;
        Ok(Self(path.as_ref().to_path_buf()))
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
        let path = self.0.clone();
        Box::new(QlogObserver::at_birth(move |birth: &Birth| Self::open(&path, birth.id, birth.side)))
    }
}
