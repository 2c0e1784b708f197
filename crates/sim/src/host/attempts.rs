//! A client's attempts to connect, one soon after the other, of which the first to succeed gets the application.

use std::net::SocketAddr;

use plait_base::Instant;
use plait_engine::connection::split::Coordinator;
use plait_engine::endpoint::{ConnectError, Race, pairs};
use plait_engine::{ClientConfig, Connection, ConnectionHandle, Endpoint};

use super::app::{App, Progress};

/// The server's name in certificates.
const SERVER_NAME: &str = "localhost";

/// What runs over a connection that is an attempt: nothing.
#[derive(Debug, Default)]
pub(super) struct NoApp(Progress);

impl App for NoApp {
    fn on_connected(&mut self, _: Instant) {}

    fn drive(&mut self, _: Instant, _: &mut Coordinator) {}

    fn progress(&self) -> &Progress {
        &self.0
    }
}

/// An attempt under way.
struct Attempt {
    handle: ConnectionHandle,
    began: Instant,
    /// It was answered, or it failed: the race has heard of it.
    is_told: bool,
}

/// Attempts of a client, and what it does once one has succeeded.
pub(super) struct Attempts {
    race: Race,
    config: ClientConfig,
    under_way: Vec<Attempt>,
    app: Option<Box<dyn App>>,
}

impl Attempts {
    /// Attempts from each of `locals` in turn, the first at `start` (RFC 8305 5).
    pub(super) fn new(
        start: Instant,
        config: ClientConfig,
        locals: &[SocketAddr],
        remote: SocketAddr,
        app: Box<dyn App>,
    ) -> Self {
        let race = Race::new(start, config.attempt_delays_to(SERVER_NAME), pairs(locals, &[remote]));
        Self { race, config, under_way: Vec::new(), app: Some(app) }
    }

    /// When the next attempt has its turn.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.race.deadline()
    }

    /// The next attempt, if its turn has come.
    pub(super) fn next(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
    ) -> Option<Result<(ConnectionHandle, Connection), ConnectError>> {
        let pair = self.race.poll(now)?;
        let begun = endpoint.connect(now, self.config.clone(), pair, SERVER_NAME);
        if let Ok((handle, _)) = &begun {
            self.under_way.push(Attempt { handle: *handle, began: now, is_told: false });
        }
        Some(begun)
    }

    /// The application, for the first attempt that succeeds.
    pub(super) fn win(&mut self) -> Option<Box<dyn App>> {
        self.app.take()
    }

    /// Whether one has succeeded.
    pub(super) fn is_won(&self) -> bool {
        self.app.is_none()
    }

    /// Tells the race what became of the attempts.
    pub(super) fn observe(&mut self, now: Instant, state: impl Fn(ConnectionHandle) -> AttemptState) {
        for attempt in self.under_way.iter_mut().filter(|attempt| !attempt.is_told) {
            let state = state(attempt.handle);
            attempt.is_told = state != AttemptState::Open;
            match state {
                AttemptState::Open => {}
                AttemptState::Answered => self.race.on_answered(now, attempt.began),
                AttemptState::Failed => self.race.on_failed(now),
            }
        }
    }
}

/// How an attempt fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptState {
    /// Nothing was heard yet.
    Open,
    /// The server was heard.
    Answered,
    /// It will not succeed.
    Failed,
}
