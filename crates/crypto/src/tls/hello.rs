//! The transport parameters in a peer's first message, read before TLS reads it (RFC 8446 4.1.2 and 4.3.1, RFC 9001 8.2).
//!
//! A server must know them to choose the version, and choose it before it begins the session, whose own parameters
//! name it. Both sides must see that they are there: TLS would also take those of the drafts, which have a code point
//! of their own. Nothing here is trusted: TLS reads the same bytes again and has the last word.

/// Handshake message types (RFC 8446 4).
const CLIENT_HELLO: u8 = 1;
const ENCRYPTED_EXTENSIONS: u8 = 8;
/// Extension quic_transport_parameters (RFC 9001 8.2).
const QUIC_TRANSPORT_PARAMETERS: u16 = 0x39;
/// Legacy version and random.
const FIXED_BYTES: usize = 2 + 32;

/// What the bytes so far say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hello<'a> {
    /// The message is not all there.
    Partial,
    /// These are the client's encoded transport parameters.
    Params(&'a [u8]),
    /// The message is whole, and they are not in it.
    Missing,
    /// This is not the message: TLS will say what is wrong.
    Unfit,
}

/// Looks for transport parameters in the first bytes of a client's handshake. `limit` bounds the message, in bytes.
pub fn read_client_hello(bytes: &[u8], limit: usize) -> Hello<'_> {
    read(bytes, limit, CLIENT_HELLO, |body| {
        body.take(FIXED_BYTES)?;
        // session id, cipher suites, compression methods
        body.vector(1)?;
        body.vector(2)?;
        body.vector(1).map(|_| ())
    })
}

/// Looks for transport parameters in the first bytes that a server sends at the Handshake level, which are its
/// EncryptedExtensions. `limit` bounds the message, in bytes.
pub fn read_encrypted_extensions(bytes: &[u8], limit: usize) -> Hello<'_> {
    read(bytes, limit, ENCRYPTED_EXTENSIONS, |_| Some(()))
}

/// Finds them in a message of this type, whose extensions begin behind what `skip` takes off its front.
fn read(bytes: &[u8], limit: usize, wanted: u8, skip: impl FnOnce(&mut HelloReader<'_>) -> Option<()>) -> Hello<'_> {
    let mut message = HelloReader(bytes);
    match message.number(1) {
        None => return Hello::Partial,
        Some(kind) if kind != usize::from(wanted) => return Hello::Unfit,
        Some(_) => {}
    }
    let Some(length) = message.number(3) else { return Hello::Partial };
    if length > limit {
        return Hello::Unfit;
    }
    match message.take(length) {
        None => Hello::Partial,
        Some(body) => {
            let mut body = HelloReader(body);
            skip(&mut body).and_then(|()| params(body)).unwrap_or(Hello::Unfit)
        }
    }
}

/// The parameters among extensions; none where these are not whole.
fn params(mut body: HelloReader<'_>) -> Option<Hello<'_>> {
    let mut extensions = HelloReader(body.vector(2)?);
    while !extensions.0.is_empty() {
        let kind = extensions.number(2)?;
        let data = extensions.vector(2)?;
        if kind == usize::from(QUIC_TRANSPORT_PARAMETERS) {
            return Some(Hello::Params(data));
        }
    }
    Some(Hello::Missing)
}

/// Cuts fields off the front.
struct HelloReader<'a>(&'a [u8]);

impl<'a> HelloReader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    /// A number of `width` bytes, at most 3.
    fn number(&mut self, width: usize) -> Option<usize> {
        Some(self.take(width)?.iter().fold(0, |n, byte| n << 8 | usize::from(*byte)))
    }

    /// Bytes behind a length of `width` bytes.
    fn vector(&mut self, width: usize) -> Option<&'a [u8]> {
        let length = self.number(width)?;
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1 << 14;

    fn hello(extensions: &[(u16, &[u8])]) -> Vec<u8> {
        let mut list = Vec::new();
        for (kind, data) in extensions {
            list.extend_from_slice(&kind.to_be_bytes());
            list.extend_from_slice(&(data.len() as u16).to_be_bytes());
            list.extend_from_slice(data);
        }
        let mut body = vec![3; FIXED_BYTES];
        body.extend_from_slice(&[2, 7, 7, 0, 2, 0x13, 1, 1, 0]);
        body.extend_from_slice(&(list.len() as u16).to_be_bytes());
        body.extend_from_slice(&list);
        let mut message = vec![CLIENT_HELLO, 0];
        message.extend_from_slice(&(body.len() as u16).to_be_bytes());
        message.extend_from_slice(&body);
        message
    }

    #[test]
    fn parameters_are_found() {
        let message = hello(&[(0, b"name"), (0x39, b"params"), (43, b"")]);
        assert_eq!(read_client_hello(&message, LIMIT), Hello::Params(b"params"));
        for cut in 0..message.len() {
            assert_eq!(read_client_hello(&message[..cut], LIMIT), Hello::Partial, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_no_hello_is_unfit() {
        assert_eq!(read_client_hello(&[2], LIMIT), Hello::Unfit, "a ServerHello");
        assert_eq!(read_client_hello(&hello(&[(0x39, b"p")]), 8), Hello::Unfit, "too long");
        assert_eq!(read_client_hello(&[1, 0xff, 0xff, 0xff], LIMIT), Hello::Unfit, "no waiting for what is too long");
        assert_eq!(read_client_hello(&[1, 0, 0, 0], LIMIT), Hello::Unfit, "empty");
    }

    #[test]
    fn parameters_under_the_code_point_of_the_drafts_are_none() {
        // RFC 9001 8.2
        assert_eq!(read_client_hello(&hello(&[(0xffa5, b"params")]), LIMIT), Hello::Missing);
        assert_eq!(read_client_hello(&hello(&[(0, b"name")]), LIMIT), Hello::Missing);
        let extensions = |kind: u8| [&[ENCRYPTED_EXTENSIONS, 0, 0, 7, 0, 5, 0, kind, 0, 1][..], b"p"].concat();
        let message = extensions(0x39);
        assert_eq!(read_encrypted_extensions(&message, LIMIT), Hello::Params(b"p"));
        assert_eq!(read_encrypted_extensions(&extensions(0x38), LIMIT), Hello::Missing);
        for cut in 0..message.len() {
            assert_eq!(read_encrypted_extensions(&message[..cut], LIMIT), Hello::Partial, "cut at {cut}");
        }
        assert_eq!(read_encrypted_extensions(&hello(&[(0x39, b"p")]), LIMIT), Hello::Unfit, "a ClientHello");
    }

    #[test]
    fn every_byte_may_lie() {
        let message = hello(&[(0, b"name"), (0x39, b"params")]);
        for at in 0..message.len() {
            for wrong in 0..=u8::MAX {
                let mut changed = message.clone();
                changed[at] = wrong;
                if let Hello::Params(found) = read_client_hello(&changed, LIMIT) {
                    assert!(found.len() <= changed.len(), "at {at}");
                }
            }
        }
    }
}
