//! An hq-interop peer on noq.

#[path = "../../hq.rs"]
mod hq;
mod stack;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    hq::main().await
}
