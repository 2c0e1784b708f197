//! NEW_TOKEN: a server's token for the client's next connection (RFC 9000 19.7).

use plait_base::Violation;

use super::{put_varints, types, varints_size};
use crate::sink::Sink;
use crate::varint::Reader;

/// NEW_TOKEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewToken<'a> {
    /// The token, at least one byte.
    pub token: &'a [u8],
}

impl<'a> NewToken<'a> {
    pub(super) fn decode(r: &mut Reader<'a>) -> Result<Self, Violation> {
        match r.prefixed()? {
            [] => Err(Violation::EmptyNewToken),
            token => Ok(Self { token }),
        }
    }

    fn fields(&self) -> [u64; 2] {
        [types::NEW_TOKEN, self.token.len() as u64]
    }

    /// Writes the frame.
    pub fn encode<S: Sink>(&self, out: &mut S) {
        put_varints(out, &self.fields());
        out.put_bytes(self.token);
    }

    /// Bytes that [`NewToken::encode`] writes.
    pub fn size(&self) -> usize {
        varints_size(&self.fields()) + self.token.len()
    }
}
