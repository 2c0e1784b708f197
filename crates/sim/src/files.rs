//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

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
