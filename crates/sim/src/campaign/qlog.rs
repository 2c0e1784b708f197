//! The qlog files of a run: a folder that appears once both are whole, and what went wrong while they were written.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use plait_base::observe::Observer;
use plait_qlog::QlogObserver;

use super::Job;
use super::store::{StoreError, io};

/// Files of a run: the client's and the server's.
const NAMES: [&str; 2] = ["client.sqlog", "server.sqlog"];

/// Observers of both ends.
pub type Observers = (Box<dyn Observer>, Box<dyn Observer>);

type Fault = Arc<Mutex<Option<StoreError>>>;

/// The qlog files of one run while it lasts.
#[derive(Debug)]
pub struct QlogFiles {
    part: PathBuf,
    whole: PathBuf,
    fault: Fault,
}

/// The folder of a job.
fn folder_of(qlog: &Path, job: &Job) -> PathBuf {
    qlog.join(format!("run-{}-seed-{}", job.index, job.seed))
}

/// True where the files of a job are there, or where none are wanted.
pub(crate) fn is_logged(qlog: Option<&Path>, job: &Job) -> bool {
    qlog.is_none_or(|qlog| NAMES.iter().all(|name| folder_of(qlog, job).join(name).is_file()))
}

impl QlogFiles {
    /// Opens the files of a job, where a folder for them is given.
    ///
    /// # Errors
    /// They cannot be made.
    pub fn open(qlog: Option<&Path>, job: &Job) -> Result<(Option<Observers>, Option<Self>), StoreError> {
        let Some(qlog) = qlog else { return Ok((None, None)) };
        let whole = folder_of(qlog, job);
        let files = Self { part: whole.with_extension("part"), whole, fault: Fault::default() };
        fs::create_dir_all(&files.part).map_err(io(&files.part))?;
        let [client, server] = NAMES.map(|name| files.observer(name));
        Ok((Some((client?, server?)), Some(files)))
    }

    fn observer(&self, name: &str) -> Result<Box<dyn Observer>, StoreError> {
        let path = self.part.join(name);
        let file = File::create(&path).map_err(io(&path))?;
        let noting = Noting { file, path, fault: self.fault.clone() };
        Ok(Box::new(QlogObserver::to_writer(Box::new(BufWriter::new(noting)))))
    }

    /// The run is over, its observers are gone: the files take their names.
    ///
    /// # Errors
    /// Something could not be written.
    pub fn finish(self) -> Result<(), StoreError> {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(fault) = fault {
            return Err(fault);
        }
        if self.whole.exists() {
            fs::remove_dir_all(&self.whole).map_err(io(&self.whole))?;
        }
        fs::rename(&self.part, &self.whole).map_err(io(&self.whole))
    }
}

impl Drop for QlogFiles {
    fn drop(&mut self) {
        // What is left of a run without a result; gone already where it finished.
        let _ = fs::remove_dir_all(&self.part);
    }
}

/// Remembers the first failure to write: observers cannot complain.
struct Noting {
    file: File,
    path: PathBuf,
    fault: Fault,
}

impl Noting {
    fn note<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                let error = io::Error::new(error.kind(), error.to_string());
                let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
                fault.get_or_insert(StoreError::Io { path: self.path.clone(), error });
            }
        })
    }
}

impl Write for Noting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.file.write(bytes);
        self.note(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.file.flush();
        self.note(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn what_cannot_be_written_is_told() {
        let qlog = std::env::temp_dir().join(format!("plait-sim-qlog-{}", std::process::id()));
        let _ = fs::remove_dir_all(&qlog);
        let job = Job { index: 3, settings: Vec::new(), seed: 7 };
        let (observers, files) = QlogFiles::open(Some(&qlog), &job).unwrap();
        let fault = files.as_ref().unwrap().fault.clone();
        let mut full = Noting { file: File::create("/dev/full").unwrap(), path: "full".into(), fault };
        assert!(full.write_all(b"x").is_err());
        drop(observers);
        assert!(files.unwrap().finish().unwrap_err().to_string().contains("full: No space left"));
        assert!(!is_logged(Some(&qlog), &job) && is_logged(None, &job));
        assert_eq!(fs::read_dir(&qlog).unwrap().count(), 0);
        let (observers, files) = QlogFiles::open(Some(&qlog), &job).unwrap();
        drop(observers);
        files.unwrap().finish().unwrap();
        assert!(is_logged(Some(&qlog), &job));
        fs::remove_dir_all(&qlog).unwrap();
    }
}
