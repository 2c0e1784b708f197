//! The public API over loopback sockets. One program, because each links the whole library.

mod bell;
mod datagrams;
mod early;
mod echo;
mod ends;
mod mobility;
mod pair;
mod paths;
mod policies;
mod race;
mod workers;
