//! By which extension a connection may have several paths.

/// The extension by which a connection may have several paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extension {
    /// Multiple paths (RFC 10069).
    #[default]
    Multipath,
    /// Multiflow QUIC (draft-deconinck-quic-multipath-07): uniflows, each of which leads one way. Its parameter and frames
    /// were never registered, so that a peer that does not know it may give their numbers another meaning.
    Multiflow,
    /// Both are offered; where the peer knows both, RFC 10069 is used.
    Either,
}
