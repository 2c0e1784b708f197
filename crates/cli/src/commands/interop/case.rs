//! The runner's test cases, by what they ask of us.

/// What a test case asks of the endpoints beyond sending files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// Nothing; what is tested happens in the network.
    Transfer,
    /// A connection for each file.
    Connections,
    /// Only ChaCha20-Poly1305 is offered.
    ChaCha20,
    /// The server demands Retry.
    Retry,
    /// The second connection resumes the first.
    Resumption,
    /// The second connection resumes the first and asks in early data.
    ZeroRtt,
    /// The client updates the keys early.
    KeyUpdate,
    /// The client begins with a version that nobody speaks.
    VersionNegotiation,
    /// The client begins with version 1, and the server moves it to version 2.
    SecondVersion,
    /// The client moves to the server's preferred address, or to a port of its own where the server has none.
    Migration,
    /// Ours: a second path to the server's other address, then the first is closed.
    Multipath,
}

impl Case {
    /// The case of this name, the runner's or the one that it gives its endpoints; none is not supported.
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "handshake" | "transfer" | "longrtt" | "multiplexing" | "blackhole" | "ecn" | "amplificationlimit"
            | "transferloss" | "transfercorruption" | "ipv6" | "rebind-port" | "rebind-addr" | "goodput"
            | "crosstraffic" => Self::Transfer,
            "multiconnect" | "handshakeloss" | "handshakecorruption" => Self::Connections,
            "chacha20" => Self::ChaCha20,
            "retry" => Self::Retry,
            "resumption" => Self::Resumption,
            "zerortt" => Self::ZeroRtt,
            "keyupdate" => Self::KeyUpdate,
            "versionnegotiation" => Self::VersionNegotiation,
            "v2" => Self::SecondVersion,
            "connectionmigration" => Self::Migration,
            "multipath" => Self::Multipath,
            // `http3` is another protocol.
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(Case::parse("longrtt"), Some(Case::Transfer));
        assert_eq!(Case::parse("multiconnect"), Some(Case::Connections));
        assert_eq!(Case::parse("multipath"), Some(Case::Multipath));
        assert_eq!(Case::parse("v2"), Some(Case::SecondVersion));
        for other in ["http3", "", "Retry"] {
            assert_eq!(Case::parse(other), None, "{other}");
        }
    }
}
