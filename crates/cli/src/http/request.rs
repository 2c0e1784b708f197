//! The request line: what a client asks for.

use super::policies::{self, Wish};
use crate::units::parse_size;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// A synthetic body of so many bytes, from `/bytes/N`.
    Synthetic(u64),
    /// A file below the root, as names from the root down.
    File(Vec<String>),
    /// An upload to be counted, `PUT /sink`.
    Sink,
    /// The policies of the server, after they became as wished for.
    Policies(Wish),
}

impl Request {
    /// Reads a request line without its line end; none when it is not a request that we serve.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        let (method, target) = (words.next()?, words.next()?);
        // Some clients add a version; HTTP/0.9 has none and the answer is the same.
        if words.next().is_some_and(|version| !version.starts_with("HTTP/")) || words.next().is_some() {
            return None;
        }
        let path = target.split(['?', '#']).next().filter(|path| path.starts_with('/'))?;
        match (method, path) {
            ("PUT", "/sink") => Some(Self::Sink),
            ("GET", policies::PATH) => {
                let query = target.split_once('?').map_or("", |(_, query)| query);
                Wish::parse(query).map(Self::Policies)
            }
            ("GET", path) => match path.strip_prefix("/bytes/") {
                Some(size) => parse_size(size).ok().map(Self::Synthetic),
                None => names(path).map(Self::File),
            },
            _ => None,
        }
    }
}

/// The names in a path, decoded; none when one of them would lead out of the root or name something odd.
fn names(path: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let name = decode(part)?;
        let odd = |c: char| c == '/' || c == '\\' || c == '\0' || c == ':' && cfg!(windows);
        if name == "." || name == ".." || name.contains(odd) {
            return None;
        }
        names.push(name);
    }
    Some(names)
}

/// Decodes `%41` to `A`.
fn decode(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        bytes.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(names: &[&str]) -> Option<Request> {
        Some(Request::File(names.iter().map(|name| (*name).to_owned()).collect()))
    }

    #[test]
    fn understood() {
        assert_eq!(Request::parse(b"GET /bytes/10M"), Some(Request::Synthetic(10_000_000)));
        assert_eq!(Request::parse(b"GET /a/b%20c.txt"), file(&["a", "b c.txt"]));
        assert_eq!(Request::parse(b"GET /a?x=1"), file(&["a"]));
        assert_eq!(Request::parse(b"GET / HTTP/0.9"), file(&[]));
        assert_eq!(Request::parse(b"PUT /sink"), Some(Request::Sink));
        let told = Request::parse(b"GET /.well-known/plait/policies");
        assert_eq!(told, Some(Request::Policies(Wish::default())));
    }

    #[test]
    fn refused() {
        let bad: [&[u8]; 15] = [
            b"GET /.well-known/plait/policies?scheduler=best",
            b"",
            b"GET",
            b"GET bytes",
            b"POST /x",
            b"PUT /elsewhere",
            b"GET /bytes/x",
            b"GET /../etc/passwd",
            b"GET /a/%2e%2e/b",
            b"GET /a%2fb",
            b"GET /a%00",
            b"GET /%zz",
            b"GET /%4",
            b"GET /a b c d",
            b"GET /\xff\xfe",
        ];
        for line in bad {
            assert_eq!(Request::parse(line), None, "{}", String::from_utf8_lossy(line));
        }
    }
}
