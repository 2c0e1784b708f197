//! Controllers that share bottlenecks.

mod fairness;
mod queues;
