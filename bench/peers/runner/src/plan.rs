//! What is asked for, by the command line.

use std::path::{Path, PathBuf};

pub const USAGE: &str = "\
Usage: run [MODE] [--rounds N] [--only NAME,...] [--cpus SERVER,CLIENT] [--datagram BYTES] [--csv FILE] and what the mode takes

Each round every contestant runs once, its server on one core and its client on another (0,1), with datagrams of at most so many bytes
of UDP payload (1452). After so many rounds (5) a table says medians, with least and most.

  bulk         the server sends --bytes (2000000000) on --streams (1) of one connection; this mode where none is named
  requests     --count (20000) requests of 750 bytes for answers of as many, --lanes (1) at once; --loaded yes keeps both cores busy
  handshakes   --count (2000) full handshakes of plait's client, --lanes (1) at once, with each server
  connections  --count (100) connections, on each of which the client sends --mbps (10) for --seconds (5)
  idle         --count (1000) connections that say nothing: resident memory of each end";

/// What contestants do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Bulk,
    Requests,
    Handshakes,
    Connections,
    Idle,
}

impl Mode {
    const ALL: [(&'static str, Self); 5] = [
        ("bulk", Self::Bulk),
        ("requests", Self::Requests),
        ("handshakes", Self::Handshakes),
        ("connections", Self::Connections),
        ("idle", Self::Idle),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(own, _)| *own == name).map(|(_, mode)| *mode)
    }

    /// The words of its load behind `client CERT ADDRESS`.
    pub fn load(self, plan: &Plan) -> Vec<String> {
        let numbers = match self {
            Self::Bulk => vec![plan.bytes, plan.streams],
            Self::Requests => vec![plan.count.unwrap_or(20_000), 750, plan.lanes],
            Self::Handshakes => vec![plan.count.unwrap_or(2_000), plan.lanes],
            Self::Connections => vec![plan.count.unwrap_or(100), plan.mbps, plan.seconds],
            Self::Idle => vec![plan.count.unwrap_or(1_000)],
        };
        let name = if self == Self::Bulk { "bytes" } else { self.name() };
        std::iter::once(name.to_owned()).chain(numbers.iter().map(u64::to_string)).collect()
    }

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }
}

/// What is asked for.
#[derive(Debug)]
pub struct Plan {
    pub mode: Mode,
    pub rounds: u64,
    pub bytes: u64,
    pub streams: u64,
    pub datagram: u64,
    pub count: Option<u64>,
    pub lanes: u64,
    pub mbps: u64,
    pub seconds: u64,
    pub is_loaded: bool,
    /// Of the server and of the client.
    pub cpus: [String; 2],
    pub only: Option<Vec<String>>,
    pub csv: Option<PathBuf>,
}

impl Plan {
    /// As the words of a command line say.
    pub fn from_words(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut words = words.into_iter().peekable();
        let mode = match words.next_if(|word| !word.starts_with("--")) {
            Some(word) => Mode::named(&word).ok_or_else(|| format!("there is no mode `{word}`\n{USAGE}"))?,
            None => Mode::Bulk,
        };
        let mut plan = Self {
            mode,
            rounds: 5,
            bytes: 2_000_000_000,
            streams: 1,
            datagram: 1452,
            count: None,
            lanes: 1,
            mbps: 10,
            seconds: 5,
            is_loaded: false,
            cpus: ["0".into(), "1".into()],
            only: None,
            csv: None,
        };
        while let Some(flag) = words.next() {
            let value = words.next().ok_or_else(|| format!("{flag} wants a value\n{USAGE}"))?;
            plan.take(&flag, value)?;
        }
        Ok(plan)
    }

    fn take(&mut self, flag: &str, value: String) -> Result<(), String> {
        let number = || {
            let number = value.parse::<u64>().ok().filter(|number| *number > 0);
            number.ok_or_else(|| format!("{flag}: `{value}` is not a number above 0\n{USAGE}"))
        };
        match flag {
            "--rounds" => self.rounds = number()?,
            "--bytes" => self.bytes = number()?,
            "--streams" => self.streams = number()?,
            "--datagram" => self.datagram = number()?,
            "--count" => self.count = Some(number()?),
            "--lanes" => self.lanes = number()?,
            "--mbps" => self.mbps = number()?,
            "--seconds" => self.seconds = number()?,
            "--loaded" => {
                self.is_loaded = match value.as_str() {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(format!("--loaded: `{value}` is neither yes nor no\n{USAGE}")),
                }
            }
            "--cpus" => {
                let (server, client) = value.split_once(',').ok_or_else(|| format!("--cpus: `{value}`\n{USAGE}"))?;
                self.cpus = [server.to_owned(), client.to_owned()];
            }
            "--only" => self.only = Some(value.split(',').map(str::to_owned).collect()),
            "--csv" => self.csv = Some(value.into()),
            _ => return Err(format!("there is no {flag}\n{USAGE}")),
        }
        Ok(())
    }
}

/// A file beside our own program.
pub fn beside(name: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(own.parent().unwrap_or(Path::new(".")).join(name))
}

#[cfg(test)]
mod tests {
    use super::{Mode, Plan};

    fn plan(text: &str) -> Result<Plan, String> {
        Plan::from_words(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_mode_may_stand_in_front() {
        assert_eq!(plan("--rounds 3").unwrap().mode, Mode::Bulk);
        let requests = plan("requests --count 7 --lanes 2 --loaded yes --cpus 2,3").unwrap();
        assert_eq!((requests.mode, requests.is_loaded, requests.cpus.concat()), (Mode::Requests, true, "23".into()));
        assert_eq!(requests.mode.load(&requests), ["requests", "7", "750", "2"]);
        assert_eq!(plan("").unwrap().mode.load(&plan("").unwrap()), ["bytes", "2000000000", "1"]);
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (text, word) in [
            ("swim", "`swim`"),
            ("--rounds", "--rounds wants"),
            ("--rounds 0", "--rounds: `0`"),
            ("idle --loaded maybe", "`maybe`"),
            ("--cpus 1", "--cpus: `1`"),
            ("--fast 1", "no --fast"),
        ] {
            let error = plan(text).unwrap_err();
            assert!(error.contains(word) && error.contains("Usage"), "{text}: {error}");
        }
    }
}
