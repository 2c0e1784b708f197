//! Who a server is from one start to the next: its key in a file, and the names and addresses that its certificate has.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use rcgen::KeyPair;

use crate::error::CliError;

/// The file of the key.
const KEY_FILE: &str = "key.pem";

/// Where the key is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// In the folder that was named: it must be possible.
    Named(PathBuf),
    /// Where programs keep such things: where that is not possible, the key lasts as long as the process.
    Usual(PathBuf),
    /// It is written nowhere.
    None,
}

impl Home {
    /// The folder that was named, or the usual one (XDG Base Directory Specification).
    pub(crate) fn new(named: Option<&PathBuf>) -> Self {
        let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let usual = || folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")));
        match named {
            Some(folder) => Self::Named(folder.clone()),
            None => usual().map_or(Self::None, |state| Self::Usual(state.join("plait"))),
        }
    }

    /// The key of this home, made at the first time.
    pub(crate) fn key(&self) -> Result<KeyPair, CliError> {
        match self {
            Self::None => fresh(),
            Self::Named(folder) => kept(folder).map_err(|error| {
                let what = format!("--identity {}: {error}", folder.join(KEY_FILE).display());
                CliError::running(what, "choose a folder that may be written, or take the file away")
            }),
            Self::Usual(folder) => kept(folder).or_else(|error| {
                tracing::warn!(%error, file = %folder.join(KEY_FILE).display(), "the key lasts until the server stops");
                fresh()
            }),
        }
    }
}

/// A key that nobody has.
pub(crate) fn fresh() -> Result<KeyPair, CliError> {
    KeyPair::generate()
        .map_err(|error| CliError::running(format!("no key could be made: {error}"), "this is a fault of plait"))
}

/// The key in `folder`, made there if there is none. Only its owner may read it.
fn kept(folder: &Path) -> io::Result<KeyPair> {
    let file = folder.join(KEY_FILE);
    match fs::read_to_string(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        read => return from_pem(&read?),
    }
    fs::create_dir_all(folder)?;
    let key = KeyPair::generate().map_err(io::Error::other)?;
    // A file of `tempfile` is its owner's alone, and it appears under its name when it is whole.
    let mut whole = tempfile::NamedTempFile::new_in(folder)?;
    whole.write_all(key.serialize_pem().as_bytes())?;
    whole.as_file().sync_all()?;
    match whole.persist_noclobber(&file) {
        Ok(_) => Ok(key),
        // Another server was as quick.
        Err(refused) if refused.error.kind() == ErrorKind::AlreadyExists => from_pem(&fs::read_to_string(&file)?),
        Err(refused) => Err(refused.error),
    }
}

fn from_pem(text: &str) -> io::Result<KeyPair> {
    KeyPair::from_pem(text).map_err(|error| io::Error::new(ErrorKind::InvalidData, format!("no private key ({error})")))
}

/// The addresses by which clients may call a server that listens on `listen`: for a wildcard those of the machine.
pub(crate) async fn addresses(listen: &[SocketAddr]) -> BTreeSet<IpAddr> {
    let mut found: BTreeSet<IpAddr> = listen.iter().map(SocketAddr::ip).filter(|ip| !ip.is_unspecified()).collect();
    let is_wild = |v4: bool| listen.iter().any(|at| at.ip().is_unspecified() && (at.is_ipv6() || v4));
    // Nothing named is every address of both families.
    let (v4, v6) = (listen.is_empty() || is_wild(true), listen.is_empty() || is_wild(false));
    if v4 || v6 {
        let mut own: BTreeSet<IpAddr> = BTreeSet::new();
        for place in plait::usable_addresses().await.unwrap_or_default() {
            own.insert(place.ip);
            // An interface may have several.
            let Some(name) = place.interface else { continue };
            own.extend(plait::addresses_of(&name).await.unwrap_or_default().into_iter().map(|local| local.ip));
        }
        found.extend(own.into_iter().filter(|ip| if ip.is_ipv4() { v4 } else { v6 }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::Named(dir.path().join("state/plait"));
        let key = || home.key().unwrap().serialize_pem();
        let first = key();
        assert_eq!(
            (first.clone(), Home::Usual(dir.path().join("state/plait")).key().unwrap().serialize_pem()),
            (key(), first)
        );
        assert_eq!(fs::read_dir(dir.path().join("state/plait")).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(dir.path().join("state/plait/key.pem")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn what_is_no_key_is_refused_where_it_was_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(KEY_FILE), "nothing").unwrap();
        let error = Home::Named(dir.path().to_owned()).key().unwrap_err();
        assert!(error.to_string().contains("key.pem: no private key"), "{error}");
        assert!(Home::Usual(dir.path().to_owned()).key().is_ok() && Home::None.key().is_ok());
        assert_eq!(fs::read_to_string(dir.path().join(KEY_FILE)).unwrap(), "nothing");
    }

    #[tokio::test]
    async fn a_wildcard_is_every_address_of_its_family() {
        let of = async |listen: &[&str]| {
            addresses(&listen.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>()).await
        };
        let own: Vec<_> = plait::usable_addresses().await.unwrap().into_iter().map(|local| local.ip).collect();
        let (v4, all) = (of(&["0.0.0.0:1"]).await, of(&["[::]:1"]).await);
        for ip in own {
            assert!(all.contains(&ip) && v4.contains(&ip) == ip.is_ipv4(), "{ip}");
        }
        assert!(all == of(&[]).await && all.iter().all(|ip| !ip.is_unspecified()));
        assert_eq!(
            of(&["192.0.2.7:1"]).await.into_iter().collect::<Vec<_>>(),
            ["192.0.2.7".parse::<IpAddr>().unwrap()]
        );
    }
}
