//! NEW_TOKEN: what a server sends so that a client's next connection starts validated (RFC 9000 8.1.3).

use std::net::IpAddr;

use plait_base::limits::{MAX_STORED_TOKENS, MAX_TOKEN_ADDRESSES};
use plait_base::{Instant, Random};
use plait_crypto::Token;
use plait_wire::frame::NewToken;
use plait_wire::{FrameWriter, SentFrame, Version};

use crate::config::{EndpointConfig, ServerConfig};
use plait_path::Paths;

/// Tokens that wait to be sent or acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    next: u32,
    /// Number, sealed token, whether it is to be sent now.
    kept: Vec<(u32, Vec<u8>, TokenState)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenState {
    Due,
    Sent,
}

impl Tokens {
    /// Makes tokens good for every validated address of the client, in the version of this connection.
    pub(crate) fn issue(
        &mut self,
        now: Instant,
        server: &ServerConfig,
        endpoint: &EndpointConfig,
        version: Version,
        paths: &Paths,
        random: &mut Random,
    ) {
        let mut addresses: Vec<IpAddr> = Vec::new();
        for path in paths.open_paths().filter(|p| p.is_validated()) {
            let ip = path.tuple().remote.ip();
            if !addresses.contains(&ip) && addresses.len() < MAX_TOKEN_ADDRESSES {
                addresses.push(ip);
            }
        }
        let token = Token::Validated { addresses, issued: endpoint.unix_seconds(now), version: version.0 };
        for _ in 0..server.validation_tokens_sent {
            if self.kept.len() >= MAX_STORED_TOKENS {
                self.kept.remove(0);
            }
            let sealed = server.token_key.seal(&token, random);
            self.kept.push((self.next, sealed, TokenState::Due));
            self.next = self.next.wrapping_add(1);
        }
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.kept.shrink_to_fit();
    }

    pub(crate) fn wants_send(&self) -> bool {
        self.kept.iter().any(|(_, _, delivery)| *delivery == TokenState::Due)
    }

    pub(crate) fn fill(&mut self, w: &mut FrameWriter<'_>) {
        for (number, token, delivery) in self.kept.iter_mut().filter(|(_, _, d)| *d == TokenState::Due) {
            if w.write(&NewToken { token }, SentFrame::NewToken(*number)) {
                *delivery = TokenState::Sent;
            }
        }
    }

    pub(crate) fn on_acked(&mut self, number: u32) {
        self.kept.retain(|(n, _, _)| *n != number);
    }

    pub(crate) fn on_lost(&mut self, number: u32) {
        self.kept.iter_mut().filter(|(n, _, _)| *n == number).for_each(|(_, _, d)| *d = TokenState::Due);
    }
}
