//! Files that are read or appear whole, or not at all.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

/// The most that is read of a file or of a line of results, bytes: no scenario, trace or certificate has as many, and a device may
/// have no end.
const READ_BYTES_MAX: u64 = 64 << 20;

/// Reads a file of at most 64 MiB.
///
/// # Errors
/// The file system refuses, or it is larger.
pub fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(path)?.take(READ_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if read as u64 > READ_BYTES_MAX {
        return Err(too_large("more"));
    }
    Ok(bytes)
}

/// As [`read_whole`], a text.
///
/// # Errors
/// The file system refuses, it is larger, or is no UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_whole(path)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not a text in UTF-8"))
}

/// The lines of a file one after another, each of at most 64 MiB and without its end.
pub(crate) struct Lines(BufReader<File>);

impl Lines {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(|file| Self(BufReader::new(file)))
    }
}

impl Iterator for Lines {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        match self.0.by_ref().take(READ_BYTES_MAX + 1).read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(read) if read as u64 > READ_BYTES_MAX => Some(Err(too_large("a line of more"))),
            Ok(_) => {
                if line.pop_if(|last| *last == b'\n').is_some() {
                    line.pop_if(|last| *last == b'\r');
                }
                Some(Ok(line))
            }
            Err(error) => Some(Err(error)),
        }
    }
}

/// What to try where the file system refuses.
pub fn remedy(error: &io::Error) -> &'static str {
    use io::ErrorKind::{
        FileTooLarge, NotADirectory, NotFound, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
    };
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => "make room on its disk, or choose a folder on another one",
        PermissionDenied | ReadOnlyFilesystem => "choose a folder that may be written",
        NotFound | NotADirectory => "check that its folder exists and may be written",
        _ => "check its folder and the disk, or choose another folder",
    }
}

fn too_large(what: &str) -> io::Error {
    io::Error::other(format!("{what} than {} MiB, which is more than is read", READ_BYTES_MAX >> 20))
}

/// Writes a file under another name first, so that what was there stays until all of the new text is on the disk.
///
/// # Errors
/// The file system refuses; then what was there is there still.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link stays one; what it names is replaced.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let before = path.metadata().ok();
    let Some(name) = path.file_name().filter(|_| before.as_ref().is_none_or(fs::Metadata::is_file)) else {
        // A pipe or a device takes bytes as they come.
        return fs::write(&path, bytes);
    };
    let part = path.with_file_name(format!(".{}.{}.part", name.to_string_lossy(), std::process::id()));
    let written = File::create(&part).and_then(|mut file| {
        if let Some(before) = before {
            file.set_permissions(before.permissions())?;
        }
        file.write_all(bytes)
    });
    let placed = written.and_then(|()| fs::rename(&part, &path));
    if placed.is_err() {
        // Perhaps it was never made.
        let _ = fs::remove_file(&part);
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_end_is_not_read_for_ever() {
        let error = read_whole(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("more than 64 MiB"), "{error}");
    }

    #[test]
    fn what_the_file_system_refuses_has_a_remedy() {
        let of = |kind: io::ErrorKind| remedy(&kind.into());
        assert!(of(io::ErrorKind::StorageFull).starts_with("make room on its disk"));
        assert_eq!(of(io::ErrorKind::ReadOnlyFilesystem), "choose a folder that may be written");
        assert!(of(io::ErrorKind::NotFound).contains("its folder exists"));
        assert!(of(io::ErrorKind::Other).contains("choose another folder"));
    }

    #[test]
    fn lines_have_a_bound_and_files_of_many_none() {
        let mut lines = Lines::open(Path::new("/dev/zero")).unwrap();
        let error = lines.next().unwrap().unwrap_err().to_string();
        assert!(error.contains("a line of more than 64 MiB"), "{error}");
        let file = std::env::temp_dir().join(format!("plait-sim-lines-{}", std::process::id()));
        fs::write(&file, "one\r\n\ntwo\nthree").unwrap();
        let lines: Vec<Vec<u8>> = Lines::open(&file).unwrap().collect::<Result<_, _>>().unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(lines, [&b"one"[..], b"", b"two", b"three"]);
    }

    #[test]
    fn files_are_replaced_in_one_step() {
        let folder = std::env::temp_dir().join(format!("plait-sim-files-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("a");
        write_whole(&file, b"one").unwrap();
        write_whole(&file, b"two").unwrap();
        assert_eq!((fs::read(&file).unwrap(), fs::read_dir(&folder).unwrap().count()), (b"two".to_vec(), 1));
        assert!(write_whole(&folder, b"x").is_err() && write_whole(&folder.join("none/a"), b"x").is_err());
        #[cfg(unix)]
        {
            use std::os::unix::fs::{PermissionsExt, symlink};
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
            symlink(&file, folder.join("link")).unwrap();
            write_whole(&folder.join("link"), b"three").unwrap();
            assert_eq!(fs::read(&file).unwrap(), b"three");
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
            assert!(folder.join("link").symlink_metadata().unwrap().is_symlink());
            write_whole(Path::new("/dev/null"), b"x").unwrap();
            assert!(write_whole(Path::new("/dev/full"), b"x").is_err());
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
