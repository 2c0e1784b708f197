//! NEW_TOKEN: a server's token for the client's next connection (RFC 9000 19.7).

use plait_base::Violation;

use super::{Encode, put_varints, types, varints_size};
use crate::varint::Reader;

/// NEW_TOKEN: proves the client's address in a later connection.
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

    fn head(&self) -> [u64; 2] {
        [types::NEW_TOKEN, self.token.len() as u64]
    }
}

impl Encode for NewToken<'_> {
    fn size(&self) -> usize {
        varints_size(&self.head()) + self.token.len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_varints(out, &self.head());
        out.extend_from_slice(self.token);
    }
}
