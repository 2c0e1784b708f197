//! A connection that lives on a thread of its endpoint: its task runs there, until it lends paths.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::driver::Driver;
use crate::workers::Seat;

/// The task of a connection on the thread that it lives on.
///
/// Once it lends a path it goes to the runtime of the application, for good: its threads are to serve paths then, and what is left of
/// the connection would keep one of them waiting.
pub(crate) struct Resident {
    driver: Option<Box<Driver>>,
    seat: Seat,
}

impl Resident {
    pub(crate) fn new(driver: Driver, seat: Seat) -> Self {
        Self { driver: Some(Box::new(driver)), seat }
    }
}

impl Future for Resident {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.seat.strike();
        let Some(driver) = &mut this.driver else { return Poll::Ready(()) };
        let polled = Pin::new(&mut **driver).poll(cx);
        if polled.is_pending() && driver.has_lent() {
            if let Some(driver) = this.driver.take() {
                driver.move_to_application();
            }
            return Poll::Ready(());
        }
        polled
    }
}
