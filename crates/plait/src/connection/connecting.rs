//! A connection whose handshake is under way: one attempt, or several of which the first to succeed becomes it.

use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use plait_base::{ConnectionId, FourTuple, Instant};
use plait_engine::connection::{ConnectionError, HandshakeSummary};
use plait_engine::endpoint::Race;

use super::attempt::{Attempt, AttemptOutcome};
use super::state::{ConnectionRef, HandshakeProgress, Standing};
use super::{Connection, Shared};
use crate::config::ClientConfig;
use crate::endpoint::{ConnectError, Hold};
use crate::timer::Timer;

/// A handshake under way; await it to get the [`Connection`].
///
/// A client with several addresses, or to a server with several, makes attempts on further pairs of them as long as
/// none is answered: they begin while this is awaited. The first whose handshake is complete becomes the connection.
/// What a server says for certain, such as that it speaks no common protocol, ends all of them.
///
/// ```no_run
/// # async fn example(endpoint: plait::Endpoint) -> Result<(), Box<dyn std::error::Error>> {
/// let connecting = endpoint.connect("192.0.2.1:443".parse()?, "example.org")?;
/// let connection = connecting.await?;
/// # Ok(()) }
/// ```
#[must_use = "the connection is closed when this is dropped"]
#[derive(Debug)]
pub struct Connecting {
    /// Attempts under way, in the order in which they began.
    contenders: Vec<Contender>,
    contest: Option<Box<Contest>>,
}

/// An attempt under way.
#[derive(Debug)]
struct Contender {
    connection: Connection,
    began: Instant,
    /// Its place in the list of all attempts.
    number: usize,
    seen: Seen,
}

/// What was acted on already of how an attempt fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    Hopeless,
    Answered,
}

/// How an attempt fares.
enum Step {
    Pending,
    Answered,
    Hopeless(ConnectionError),
    Connected,
    Failed(ConnectionError),
}

/// What is needed to make further attempts.
#[derive(Debug)]
pub(crate) struct Contest {
    endpoint: Hold,
    config: ClientConfig,
    server_name: String,
    race: Race,
    began: Instant,
    attempts: Vec<Attempt>,
    timer: Timer,
}

impl Contest {
    pub(crate) fn new(endpoint: Hold, config: ClientConfig, pairs: &[FourTuple], server_name: &str) -> Box<Self> {
        let began = endpoint.clock().now();
        let race = Race::new(began, config.attempt_delays_to(server_name), pairs.iter().copied());
        let server_name = server_name.to_owned();
        Box::new(Self { endpoint, config, server_name, race, began, attempts: Vec::new(), timer: Timer::default() })
    }

    /// Makes the first attempt that can be made.
    ///
    /// # Errors
    /// None can; says why not the first.
    pub(crate) fn begin(mut self: Box<Self>) -> Result<Connecting, ConnectError> {
        let mut first_error = None;
        while let Some(pair) = self.race.poll(self.began) {
            match self.attempt(self.began, pair) {
                Ok(contender) => return Ok(Connecting { contenders: vec![contender], contest: Some(self) }),
                Err(error) => {
                    first_error.get_or_insert(error);
                    self.race.on_failed(self.began);
                }
            }
        }
        Err(first_error.unwrap_or(ConnectError::NoAddress))
    }

    fn attempt(&mut self, now: Instant, tuple: FourTuple) -> Result<Contender, ConnectError> {
        let mut config = self.config.clone();
        if !self.attempts.is_empty() {
            // Each attempt is a connection of its own to the server.
            config.first_dcid(None);
        }
        let shared = self.endpoint.connect(config, tuple, &self.server_name)?;
        let number = self.attempts.len();
        self.attempts.push(Attempt { tuple, after: now.since(self.began), outcome: AttemptOutcome::Open });
        Ok(Contender { connection: Connection::new(shared), began: now, number, seen: Seen::Nothing })
    }

    /// The next attempt whose turn has come and that can be made.
    fn next(&mut self, now: Instant) -> Option<Contender> {
        while let Some(pair) = self.race.poll(now) {
            match self.attempt(now, pair) {
                Ok(contender) => return Some(contender),
                Err(error) => {
                    tracing::debug!(%error, tuple = %pair, "no attempt");
                    self.race.on_failed(now);
                }
            }
        }
        None
    }

    fn note(&mut self, number: usize, outcome: AttemptOutcome) {
        if let Some(attempt) = self.attempts.get_mut(number) {
            attempt.outcome = outcome;
        }
    }

    /// What the application learns when nothing can come any more: how the first attempt failed.
    fn failure(&self) -> Option<ConnectionError> {
        self.attempts.iter().find_map(|attempt| match &attempt.outcome {
            AttemptOutcome::Failed(error) => Some(error.clone()),
            _ => None,
        })
    }

    /// Ready when the next attempt has its turn.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.race.deadline() else { return Poll::Pending };
        self.timer.poll_at(cx, self.endpoint.clock(), at)
    }
}

/// True for what a server says of itself, or what we found wrong with it: other addresses would bring the same.
fn is_definite(error: &ConnectionError) -> bool {
    match error {
        ConnectionError::TimedOut | ConnectionError::Unreachable(_) | ConnectionError::Reset => false,
        ConnectionError::VersionMismatch
        | ConnectionError::TransportError(_)
        | ConnectionError::ConnectionClosed(_)
        | ConnectionError::ApplicationClosed(_)
        | ConnectionError::LocallyClosed => true,
    }
}

impl Contender {
    /// How it fares. The task is woken when the handshake has come as far as `wanted`; where attempts race, as soon as the peer
    /// is heard.
    fn step(&self, cx: &Context<'_>, wanted: HandshakeProgress, is_raced: bool) -> Step {
        let mut state = self.connection.shared.lock();
        if let Err(error) = state.check() {
            return Step::Failed(error);
        }
        if state.progress == HandshakeProgress::Connected {
            return Step::Connected;
        }
        let is_awaited = is_raced && state.progress == HandshakeProgress::Begun;
        let next = if is_awaited { HandshakeProgress::Heard } else { wanted };
        state.handshake_waiters.register(next, cx.waker());
        match (state.progress, state.standing) {
            (HandshakeProgress::Begun, Standing::Hopeless(why)) if self.seen == Seen::Nothing => {
                Step::Hopeless(why.into())
            }
            (HandshakeProgress::Begun, _) => Step::Pending,
            _ if self.seen != Seen::Answered => Step::Answered,
            _ => Step::Pending,
        }
    }
}

impl Connecting {
    /// On a server: the only attempt there is.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let (connection, began) = (Connection::new(shared), Instant::ZERO);
        Self { contenders: vec![Contender { connection, began, number: 0, seen: Seen::Nothing }], contest: None }
    }

    fn first(&self) -> Option<&Connection> {
        self.contenders.first().map(|contender| &contender.connection)
    }

    /// The attempts so far, in their order; on a server none.
    pub fn attempts(&self) -> Vec<Attempt> {
        self.contest.as_ref().map(|contest| contest.attempts.clone()).unwrap_or_default()
    }

    /// Goes on before the handshake is complete, where that is possible.
    ///
    /// On a client it is when it has a session of the server that allows 0-RTT. What it sends then may be repeated by
    /// an attacker, so it must be harmless when done twice; it is lost when the server refuses 0-RTT, which
    /// [`ZeroRttAccepted`] tells. The first attempt becomes the connection then, and no further one is made: what the
    /// application wrote belongs to it. On a server it always is possible (0.5-RTT): who the client is may then be not
    /// known yet.
    ///
    /// # Errors
    /// Gives the handshake back when it is not possible.
    pub fn into_0rtt(mut self) -> Result<(Connection, ZeroRttAccepted), Self> {
        let possible = self.first().is_some_and(|first| {
            let state = first.shared.lock();
            // On a fast network the handshake may be over before this call: early data was offered all the same.
            let offered = state.engine.connection().session().has_0rtt()
                || state.engine.connection().session().accepted_0rtt().is_some();
            state.error.is_none() && (state.engine.connection().side().is_server() || offered)
        });
        if !possible {
            return Err(self);
        }
        match self.finish(0) {
            Some(connection) => {
                let accepted = ZeroRttAccepted { connection: connection.clone() };
                Ok((connection, accepted))
            }
            None => Err(self),
        }
    }

    /// Takes the attempt at `place` for the connection and gives up all others.
    fn finish(&mut self, place: usize) -> Option<Connection> {
        if place >= self.contenders.len() {
            return None;
        }
        let winner = self.contenders.remove(place);
        let successor = winner.connection.shared.lock().engine.connection().session().peer_cid();
        self.give_up(successor);
        let attempts = self.contest.take().map(|mut contest| {
            contest.note(winner.number, AttemptOutcome::Connected);
            contest.attempts
        });
        let mut state = winner.connection.shared.lock();
        state.attempts = attempts.unwrap_or_default();
        state.stand_alone(winner.connection.shared.clock.now());
        drop(state);
        Some(winner.connection)
    }

    /// Ends all attempts, in favour of the one to which an id of the server leads.
    fn give_up(&mut self, successor: Option<ConnectionId>) {
        self.contenders.drain(..).for_each(|loser| loser.connection.shared.withdraw(successor));
    }

    /// Waits until ALPN and, on a server, the server name are known: on a client by the first attempt that brings them.
    ///
    /// # Errors
    /// The handshake failed.
    pub async fn handshake_data(&mut self) -> Result<HandshakeSummary, ConnectionError> {
        let ready = poll_fn(|cx| self.poll_until(cx, HandshakeProgress::DataReady)).await?;
        let Some(contender) = self.contenders.get(ready) else { return Err(ConnectionError::LocallyClosed) };
        Ok(contender.connection.shared.lock().engine.connection().session().summary())
    }

    /// The peer's address; of several attempts under way the first one's.
    pub fn remote_address(&self) -> SocketAddr {
        self.first().map_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)), Connection::remote_address)
    }

    /// Our address, once it is known; of several attempts under way the first one's.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.first().and_then(Connection::local_ip)
    }

    /// Ready with the place of the first attempt that came this far.
    fn poll_until(&mut self, cx: &mut Context<'_>, wanted: HandshakeProgress) -> Poll<Result<usize, ConnectionError>> {
        loop {
            self.look(cx, wanted)?;
            let came = |c: &Contender| c.connection.shared.lock().progress >= wanted;
            if let Some(place) = self.contenders.iter().position(came) {
                return Poll::Ready(Ok(place));
            }
            let Some(contest) = &mut self.contest else { return self.last_word() };
            if let Some(contender) = contest.next(contest.endpoint.clock().now()) {
                self.contenders.push(contender);
                continue;
            }
            if contest.race.deadline().is_none() && self.contenders.iter().all(|c| c.seen == Seen::Hopeless) {
                let error = contest.failure().unwrap_or(ConnectionError::LocallyClosed);
                self.give_up(None);
                return Poll::Ready(Err(error));
            }
            ready!(contest.poll_turn(cx));
        }
    }

    /// Without further attempts to make.
    fn last_word(&self) -> Poll<Result<usize, ConnectionError>> {
        if self.contenders.is_empty() { Poll::Ready(Err(ConnectionError::LocallyClosed)) } else { Poll::Pending }
    }

    /// Acts on how the attempts fare.
    ///
    /// # Errors
    /// What is certain of the server, or of the only attempt.
    fn look(&mut self, cx: &Context<'_>, wanted: HandshakeProgress) -> Result<(), ConnectionError> {
        let mut place = 0;
        while let Some(contender) = self.contenders.get_mut(place) {
            place += 1;
            let (number, began) = (contender.number, contender.began);
            let step = contender.step(cx, wanted, self.contest.is_some());
            let Some(contest) = &mut self.contest else {
                match step {
                    Step::Failed(error) => {
                        self.contenders.clear();
                        return Err(error);
                    }
                    _ => continue,
                }
            };
            let now = contest.endpoint.clock().now();
            match step {
                Step::Pending | Step::Connected => {}
                Step::Answered => {
                    contender.seen = Seen::Answered;
                    contest.race.on_answered(now, began);
                }
                Step::Hopeless(why) => {
                    contender.seen = Seen::Hopeless;
                    contest.note(number, AttemptOutcome::Failed(why));
                    contest.race.on_failed(now);
                }
                Step::Failed(error) => {
                    place -= 1;
                    self.contenders.remove(place);
                    contest.note(number, AttemptOutcome::Failed(error.clone()));
                    contest.race.on_failed(now);
                    if is_definite(&error) {
                        self.give_up(None);
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }
}

impl Future for Connecting {
    type Output = Result<Connection, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let place = ready!(self.poll_until(cx, HandshakeProgress::Connected))?;
        Poll::Ready(self.finish(place).ok_or(ConnectionError::LocallyClosed))
    }
}

/// Tells whether the server took the 0-RTT data; always true on servers. False as well when the handshake failed.
#[derive(Debug)]
pub struct ZeroRttAccepted {
    connection: Connection,
}

fn poll_progress(
    shared: &ConnectionRef,
    wanted: HandshakeProgress,
    cx: &Context<'_>,
) -> Poll<Result<(), ConnectionError>> {
    let mut state = shared.lock();
    if let Err(error) = state.check() {
        return Poll::Ready(Err(error));
    }
    if state.progress >= wanted {
        return Poll::Ready(Ok(()));
    }
    state.handshake_waiters.register(wanted, cx.waker());
    Poll::Pending
}

impl Future for ZeroRttAccepted {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let shared = &self.connection.shared;
        match poll_progress(shared, HandshakeProgress::Connected, cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(_)) => Poll::Ready(false),
            Poll::Ready(Ok(())) => {
                let state = shared.lock();
                Poll::Ready(
                    state.engine.connection().side().is_server()
                        || state.engine.connection().session().accepted_0rtt() == Some(true),
                )
            }
        }
    }
}
