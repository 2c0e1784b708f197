//! Captures of links as pcapng files, and the secrets with which an analyser reads them.

mod ng;
mod packet;
#[cfg(test)]
mod tests;

use std::fmt::Write;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use plait_netsim::Tapped;

use crate::scenario::{Direction, Place, Scenario};

/// The file of secrets beside the captures.
pub const KEYS_FILE: &str = "keys.log";

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The link, a path's own or a named one.
    pub place: Place,
    /// Which way its packets go.
    pub direction: Direction,
    /// What the capture of the link is called: `path0`, or `link-NAME`. Both directions are in one file, where both are wanted.
    pub name: String,
}

/// Why a capture was not written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {error}")]
pub struct PcapError {
    /// The file or folder.
    pub path: PathBuf,
    /// What the file system said.
    pub error: io::Error,
}

/// The secrets of all connections of a run, as lines of an NSS key log. Servers tell them, for each knows them before
/// the first packet that they protect.
#[derive(Debug, Default)]
struct Keys(Mutex<String>);

impl rustls::KeyLog for Keys {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_str(label);
        for bytes in [client_random, secret] {
            lines.push(' ');
            bytes.iter().for_each(|byte| {
                let _ = write!(lines, "{byte:02x}");
            });
        }
        lines.push('\n');
    }
}

/// The file of a link while it is written.
#[derive(Debug)]
struct LinkFile {
    name: String,
    writer: ng::Writer<BufWriter<File>>,
}

/// The captures of one run while it lasts.
#[derive(Debug)]
pub struct Captures {
    part: PathBuf,
    whole: PathBuf,
    ways: Vec<Way>,
    files: Vec<LinkFile>,
    keys: Arc<Keys>,
    /// Bytes of the key log that the captures have already.
    told: usize,
    fault: Option<PcapError>,
}

/// The directions of links that `names` stand for.
///
/// # Errors
/// The name that no link of the scenario has.
pub fn ways(names: &[String], scenario: &Scenario) -> Result<Vec<Way>, String> {
    let paths = scenario.paths.len();
    let own = (0..paths).map(|path| (Place::path(path), format!("path.{path}")));
    let named = scenario.links.iter().enumerate();
    let named = named.map(|(index, link)| (Place::link(paths, index), format!("link.{}", link.name)));
    let sides = [(Direction::Up, "up"), (Direction::Down, "down")];
    let links = own.chain(named);
    let all: Vec<(String, &str, Way)> = links
        .flat_map(|(place, key)| {
            sides.map(|(direction, side)| {
                let name = key.replace("path.", "path").replace("link.", "link-");
                (key.clone(), side, Way { place, direction, name })
            })
        })
        .collect();
    let is = |name: &str, key: &str, side: &str| {
        name == "all" || name == key || name.strip_suffix(side).and_then(|rest| rest.strip_suffix('.')) == Some(key)
    };
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|(key, side, _)| is(name, key, side))) {
        let mut keys: Vec<&str> = all.iter().map(|(key, ..)| key.as_str()).collect();
        keys.dedup();
        return Err(format!(
            "`{unknown}` is no link to capture; accepted: all, {}, each alone or with .up or .down",
            keys.join(", ")
        ));
    }
    let wanted = all.into_iter().filter(|(key, side, _)| names.iter().any(|name| is(name, key, side)));
    Ok(wanted.map(|(.., way)| way).collect())
}

impl Captures {
    /// Opens a file for each link of `ways`, in a folder that takes its name when all are whole.
    ///
    /// # Errors
    /// They cannot be made.
    pub fn open(folder: &Path, ways: Vec<Way>) -> Result<Self, PcapError> {
        let part = folder.with_extension("part");
        fs::create_dir_all(&part).map_err(refused(&part))?;
        let (whole, keys) = (folder.to_owned(), Arc::default());
        let mut captures = Self { part, whole, ways, files: Vec::new(), keys, told: 0, fault: None };
        let mut names: Vec<String> = captures.ways.iter().map(|way| way.name.clone()).collect();
        names.dedup();
        for name in names {
            let path = captures.part.join(file_name(&name));
            let file = File::create(&path).map(BufWriter::new);
            let writer = file.and_then(|file| ng::Writer::begin(file, &name)).map_err(refused(&path))?;
            captures.files.push(LinkFile { name, writer });
        }
        Ok(captures)
    }

    /// What is captured, in the order in which [`Captures::note`] counts.
    pub fn ways(&self) -> &[Way] {
        &self.ways
    }

    /// Who is told the secrets.
    pub fn key_log(&self) -> Arc<dyn rustls::KeyLog> {
        self.keys.clone()
    }

    /// These left the queues of the links at their places among the ways since the last call. What cannot be written is
    /// told by [`Captures::finish`].
    pub fn note(&mut self, mut tapped: Vec<(usize, Tapped)>) {
        // An analyser reads answers after what they answer.
        tapped.sort_by_key(|(_, one)| one.at);
        if self.fault.is_none()
            && let Err(fault) = self.write(&tapped)
        {
            self.fault = Some(fault);
        }
    }

    fn write(&mut self, tapped: &[(usize, Tapped)]) -> Result<(), PcapError> {
        let Self { part, ways, files, keys, told, .. } = self;
        let lines = keys.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Secrets that became known stand before the packets that they protect.
        for file in files.iter_mut().filter(|_| lines.len() > *told) {
            let new = lines.get(*told..).unwrap_or_default();
            file.writer.secrets(new.as_bytes()).map_err(refused(&part.join(file_name(&file.name))))?;
        }
        *told = lines.len();
        for (index, one) in tapped {
            let Some(way) = ways.get(*index) else { continue };
            let Some(file) = files.iter_mut().find(|file| file.name == way.name) else { continue };
            let written = file.writer.packet(one.at, way.direction, &packet::ip_packet(&one.datagram));
            written.map_err(refused(&part.join(file_name(&file.name))))?;
        }
        Ok(())
    }

    /// The run is over: the files take their names, which are given back.
    ///
    /// # Errors
    /// Something could not be written.
    pub fn finish(mut self) -> Result<Vec<PathBuf>, PcapError> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let mut names = Vec::new();
        for file in &mut self.files {
            let name = file_name(&file.name);
            file.writer.flush().map_err(refused(&self.part.join(&name)))?;
            names.push(name);
        }
        let keys = self.part.join(KEYS_FILE);
        let lines = self.keys.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        fs::write(&keys, lines).map_err(refused(&keys))?;
        names.push(KEYS_FILE.to_owned());
        if self.whole.exists() {
            fs::remove_dir_all(&self.whole).map_err(refused(&self.whole))?;
        }
        fs::rename(&self.part, &self.whole).map_err(refused(&self.whole))?;
        Ok(names.iter().map(|name| self.whole.join(name)).collect())
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        // What is left of a run without a result; gone already where it finished.
        let _ = fs::remove_dir_all(&self.part);
    }
}

fn file_name(link: &str) -> String {
    format!("{link}.pcapng")
}

fn refused(path: &Path) -> impl FnOnce(io::Error) -> PcapError + '_ {
    move |error| PcapError { path: path.to_owned(), error }
}
