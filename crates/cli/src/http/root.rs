//! The folder that a server shows: which file a request means, and never one outside.

use std::io;
use std::path::{Path, PathBuf};

use super::Refusal;

/// A folder whose regular files may be read.
#[derive(Clone, Debug)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// The folder at `path`, which must exist.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let real = path.canonicalize()?;
        if !real.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "not a folder"));
        }
        Ok(Self(real))
    }

    /// The regular file under these names; symbolic links may lead anywhere inside the root.
    pub(crate) fn find(&self, names: &[String]) -> Result<PathBuf, Refusal> {
        let mut path = self.0.clone();
        path.extend(names);
        let real = path.canonicalize().map_err(|_| Refusal::NotFound)?;
        let inside = real.starts_with(&self.0);
        // Not a pipe or a device, which could block or never end.
        let regular = real.metadata().is_ok_and(|meta| meta.is_file());
        if inside && regular { Ok(real) } else { Err(Refusal::NotFound) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(path: &str) -> Vec<String> {
        path.split('/').map(str::to_owned).collect()
    }

    #[test]
    fn inside_only() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("sub/a"), "a").unwrap();
        fs::write(dir.path().join("secret"), "s").unwrap();
        let shown = Root::new(&root).unwrap();
        assert!(shown.find(&names("sub/a")).unwrap().ends_with("sub/a"));
        for path in ["sub", "none", "sub/none", "../secret", "sub/../../secret"] {
            assert_eq!(shown.find(&names(path)), Err(Refusal::NotFound), "{path}");
        }
        assert_eq!(shown.find(&[]), Err(Refusal::NotFound));
        assert_eq!(shown.find(&names("/etc/passwd")), Err(Refusal::NotFound));
        assert!(Root::new(&dir.path().join("secret")).is_err());
        assert!(Root::new(&dir.path().join("none")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_out_are_refused() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a"), "a").unwrap();
        fs::write(dir.path().join("secret"), "s").unwrap();
        symlink(dir.path().join("secret"), root.join("out")).unwrap();
        symlink(dir.path(), root.join("up")).unwrap();
        symlink(root.join("a"), root.join("in")).unwrap();
        let shown = Root::new(&root).unwrap();
        assert!(shown.find(&names("in")).is_ok());
        assert_eq!(shown.find(&names("out")), Err(Refusal::NotFound));
        assert_eq!(shown.find(&names("up/secret")), Err(Refusal::NotFound));
    }
}
