//! A file to be sent: looked at, and read piece by piece, without being held open in between.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use super::Refusal;
use super::root::Root;

/// A file that was asked for. Requests that wait for credit hold this and no open file: there may be more of them than a
/// process may open files.
#[derive(Clone, Debug)]
pub(crate) struct FileSource {
    path: Arc<PathBuf>,
    len: u64,
    identity: Option<FileIdentity>,
}

/// Tells a file from another one that took its name, where the system can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    #[cfg(unix)]
    fn of(meta: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        Some(Self { device: meta.dev(), inode: meta.ino() })
    }

    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Option<Self> {
        None
    }
}

impl FileSource {
    /// The regular file under these names.
    pub(crate) fn find(root: &Root, names: &[String]) -> Result<Self, Refusal> {
        let path = root.find(names)?;
        let meta = File::open(&path).and_then(|file| file.metadata()).map_err(|_| Refusal::NotFound)?;
        Ok(Self { path: Arc::new(path), len: meta.len(), identity: FileIdentity::of(&meta) })
    }

    /// Bytes when it was found; what is appended later is not sent.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Reads exactly `bytes` from `offset` on; `Broken` when the file has become shorter, or another.
    pub(crate) fn read(&self, offset: u64, bytes: u64) -> Result<Vec<u8>, Refusal> {
        self.read_up_to(offset, bytes).ok().filter(|piece| piece.len() as u64 == bytes).ok_or(Refusal::Broken)
    }

    fn read_up_to(&self, offset: u64, bytes: u64) -> io::Result<Vec<u8>> {
        let mut file = File::open(self.path.as_path())?;
        if FileIdentity::of(&file.metadata()?) != self.identity {
            return Err(io::Error::other("another file took the name"));
        }
        file.seek(SeekFrom::Start(offset))?;
        let mut piece = Vec::with_capacity(bytes as usize);
        file.take(bytes).read_to_end(&mut piece)?;
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn pieces_are_those_of_the_file_that_was_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, b"0123456789").unwrap();
        let root = Root::new(dir.path()).unwrap();
        let names = ["a".to_owned()];
        let source = FileSource::find(&root, &names).unwrap();
        assert_eq!((source.len(), source.read(3, 4)), (10, Ok(b"3456".to_vec())));
        let piece = source.read(0, 10).unwrap();
        assert_eq!(piece.capacity(), 10, "what was charged is what is held");
        assert_eq!(source.read(8, 3), Err(Refusal::Broken), "shorter than it was");
        if cfg!(unix) {
            // The old file must stay, so that its number is not given to the new one.
            fs::rename(&path, dir.path().join("old")).unwrap();
            fs::write(&path, b"abcdefghij").unwrap();
            assert_eq!(source.read(0, 10), Err(Refusal::Broken), "another file");
        }
        assert_eq!(FileSource::find(&root, &["none".to_owned()]).unwrap_err(), Refusal::NotFound);
    }
}
