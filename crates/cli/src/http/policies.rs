//! Policies of the server, asked for by the client: what a connection may wish for, and what acts.
//!
//! `GET /.well-known/plait/policies` answers with the policies by which the server sends on this connection, as JSON. With a
//! query, such as `?scheduler=redundant&reinjection=none`, it takes those first, once a connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use plait::{Connection, Policies, StreamPlacement};
use serde::{Deserialize, Serialize};

use super::{Refusal, send_request};
use crate::names::{AckPathName, CongestionName, ReinjectionName, SchedulerName};

/// Where a server tells its policies.
pub(crate) const PATH: &str = "/.well-known/plait/policies";
/// Longest answer that a client reads, bytes.
const MAX_ANSWER_BYTES: usize = 4096;
/// Longest name of a policy that a client believes, bytes.
const MAX_NAME_BYTES: usize = 40;

/// The policies of one side, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Named {
    /// Which path carries the next packet.
    pub(crate) scheduler: String,
    /// Name of the congestion controller.
    pub(crate) congestion: String,
    /// Path that carries the acknowledgements of a path.
    pub(crate) ack_path: String,
    /// What idle paths send again.
    pub(crate) reinjection: String,
}

impl From<Policies> for Named {
    fn from(acting: Policies) -> Self {
        Self {
            scheduler: acting.scheduler.to_owned(),
            congestion: acting.congestion.to_owned(),
            ack_path: acting.ack_route.to_owned(),
            reinjection: acting.reinjection.to_owned(),
        }
    }
}

impl Named {
    /// What a server says; none where it says something else, or in words that no policy has.
    pub(crate) fn read(answer: &[u8]) -> Option<Self> {
        let named: Self = serde_json::from_slice(answer).ok()?;
        let is_name = |name: &String| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.chars().all(plain)
        };
        let Self { scheduler, congestion, ack_path, reinjection } = &named;
        let all = [scheduler, congestion, ack_path, reinjection].into_iter().all(is_name);
        all.then_some(named)
    }
}

/// Policies that a client asks for; what it does not name stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) scheduler: Option<SchedulerName>,
    pub(crate) congestion: Option<CongestionName>,
    pub(crate) ack_path: Option<AckPathName>,
    pub(crate) reinjection: Option<ReinjectionName>,
    /// Whether streams keep to a path each.
    pub(crate) placement: Option<StreamPlacement>,
}

impl Wish {
    /// Reads a query; none where it names something that there is not.
    pub(crate) fn parse(query: &str) -> Option<Self> {
        fn name<T: ValueEnum>(value: &str) -> Option<Option<T>> {
            T::from_str(value, false).ok().map(Some)
        }
        let mut wish = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=')?;
            match key {
                "scheduler" => wish.scheduler = name(value)?,
                "congestion" => wish.congestion = name(value)?,
                "ack_path" => wish.ack_path = name(value)?,
                "reinjection" => wish.reinjection = name(value)?,
                "placement" => {
                    let named = StreamPlacement::NAMES.into_iter().find(|(name, _)| *name == value);
                    wish.placement = Some(named?.1);
                }
                _ => return None,
            }
        }
        Some(wish)
    }

    /// True when nothing is asked for.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Each policy named, with its key.
    pub(crate) fn words(&self) -> [(&'static str, Option<&'static str>); 5] {
        [
            ("scheduler", self.scheduler.map(SchedulerName::name)),
            ("congestion", self.congestion.map(CongestionName::name)),
            ("ack_path", self.ack_path.map(AckPathName::name)),
            ("reinjection", self.reinjection.map(ReinjectionName::name)),
            ("placement", self.placement.map(StreamPlacement::name)),
        ]
    }

    /// As [`Wish::parse`] reads it.
    pub(crate) fn query(&self) -> String {
        let words = self.words().into_iter().filter_map(|(key, name)| Some(format!("{key}={}", name?)));
        words.collect::<Vec<_>>().join("&")
    }

    /// What to ask the server for.
    fn target(&self) -> String {
        let query = self.query();
        if query.is_empty() { PATH.to_owned() } else { format!("{PATH}?{query}") }
    }

    /// Lets our side of `connection` send as wished from now on.
    fn act(&self, connection: &Connection) {
        if let Some(scheduler) = self.scheduler.and_then(|name| plait::scheduler(name.name())) {
            connection.set_scheduler(&*scheduler);
        }
        if let Some(controller) = self.congestion.and_then(|name| plait::congestion_controller(name.name())) {
            connection.set_congestion_controller(controller);
        }
        if let Some(ack_route) = self.ack_path.and_then(|name| plait::ack_route(name.name())) {
            connection.set_ack_route(&*ack_route);
        }
        if let Some(reinjection) = self.reinjection.and_then(|name| plait::reinjection(name.name())) {
            connection.set_reinjection(&*reinjection);
        }
        if let Some(placement) = self.placement {
            connection.set_stream_placement(placement);
        }
    }
}

/// Whether clients may choose how the server sends to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Terms {
    /// Once a connection: a new congestion controller forgets what the old one had learned of the network.
    Negotiable,
    /// Not at all.
    Fixed,
}

/// A server's answers about the policies of one connection.
#[derive(Debug)]
pub(crate) struct Desk {
    connection: Connection,
    terms: Terms,
    was_used: AtomicBool,
}

impl Desk {
    /// For one connection.
    pub(crate) fn new(connection: Connection, terms: Terms) -> Self {
        Self { connection, terms, was_used: AtomicBool::new(false) }
    }

    /// Does what is wished for; says what acts then.
    pub(crate) fn answer(&self, wish: &Wish) -> Result<String, Refusal> {
        if !wish.is_empty() {
            if self.terms == Terms::Fixed || self.was_used.swap(true, Ordering::AcqRel) {
                return Err(Refusal::Forbidden);
            }
            wish.act(&self.connection);
        }
        let named = Named::from(self.connection.policies());
        serde_json::to_string(&named).map(|line| line + "\n").map_err(|_| Refusal::Broken)
    }
}

/// What a server told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerPolicies {
    /// The policies that the server named.
    pub(crate) named: Named,
    /// Length of its answer on the stream.
    pub(crate) bytes: u64,
}

/// Asks the server for policies, or only what they are where nothing is wished for. None where it keeps its own, does not
/// say, or takes longer than `patience`.
pub(crate) async fn ask(connection: &Connection, wish: &Wish, patience: Duration) -> Option<ServerPolicies> {
    let asking = async {
        let (mut send, mut recv) = connection.open_bi().await.ok()?;
        send_request(&mut send, &wish.target()).await.ok()?;
        let answer = recv.read_to_end(MAX_ANSWER_BYTES).await.ok()?;
        Some(ServerPolicies { named: Named::read(&answer)?, bytes: answer.len() as u64 })
    };
    tokio::time::timeout(patience, asking).await.ok().flatten()
}

#[cfg(test)]
mod tests;
