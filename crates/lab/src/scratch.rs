//! The laboratory's folder for files: certificates, logs, namespaces. It goes at the end, and what killed ones left goes at
//! the next start.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use tempfile::TempDir;

use crate::error::LabError;

/// How the folders are called; no other program's are touched.
const PREFIX: &str = "plait-lab-";
/// The file in one that its laboratory holds locked for as long as it lives.
const LOCK: &str = "lock";

/// A folder of this laboratory alone.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: TempDir,
    /// Folders that were left by others, and are gone now.
    pub(crate) swept: usize,
    _lock: Flock<File>,
}

impl Scratch {
    /// A new one, in the system's place for temporary files.
    ///
    /// # Errors
    /// It cannot be made: no place, or no permission.
    pub(crate) fn make() -> Result<Self, LabError> {
        Self::make_in(&std::env::temp_dir())
    }

    fn make_in(place: &Path) -> Result<Self, LabError> {
        let swept = sweep(place);
        let failed =
            || LabError::io(format!("no folder for files in {} (TMPDIR names another place)", place.display()));
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place).map_err(failed())?;
        let file = File::create(folder.path().join(LOCK)).map_err(failed())?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock);
        let _lock = lock.map_err(|(_, errno)| failed()(io::Error::from(errno)))?;
        Ok(Self { folder, swept, _lock })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Takes away the folders of laboratories that are no more; gives their number.
fn sweep(place: &Path) -> usize {
    let Ok(entries) = fs::read_dir(place) else { return 0 };
    let is_ours = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX)) && path.is_dir()
    };
    let is_left = |path: &PathBuf| {
        let file = File::open(path.join(LOCK));
        // Without a lock it is being made, or is not one of ours.
        file.is_ok_and(|file| Flock::lock(file, FlockArg::LockExclusiveNonblock).is_ok())
    };
    let left = entries.flatten().map(|entry| entry.path()).filter(is_ours).filter(is_left);
    left.filter(|path| fs::remove_dir_all(path).is_ok()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_swept_and_what_lives_stays() {
        let place = tempfile::tempdir().unwrap();
        let alive = Scratch::make_in(place.path()).unwrap();
        let left = place.path().join("plait-lab-left");
        fs::create_dir(&left).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        fs::write(left.join("key.pem"), "x").unwrap();
        let (foreign, fresh) = (place.path().join("other"), place.path().join("plait-lab-fresh"));
        fs::create_dir(&foreign).unwrap();
        fs::create_dir(&fresh).unwrap();
        let next = Scratch::make_in(place.path()).unwrap();
        assert_eq!((next.swept, left.exists()), (1, false));
        assert!(alive.path().exists() && foreign.exists() && fresh.exists());
        let path = next.path().to_owned();
        drop(next);
        assert!(!path.exists());
    }

    #[test]
    fn a_place_that_is_not_there_is_named() {
        let error = Scratch::make_in(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.contains("/nowhere") && error.contains("TMPDIR"), "{error}");
    }
}
