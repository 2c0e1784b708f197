//! The plait command: multipath QUIC downloads, a server for them, a demonstration, and a laboratory.

fn main() -> std::process::ExitCode {
    plait_cli::plait()
}
