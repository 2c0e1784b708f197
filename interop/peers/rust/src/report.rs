//! What a peer prints: one JSON object a line on standard output.

use std::io::Write;

use serde_json::{Value, json};

/// What a client found out.
#[derive(Debug, Default)]
pub struct Report {
    pub downloads: Vec<Value>,
    pub resumed: bool,
    pub early_data: bool,
    pub version_negotiated: bool,
    pub paths: Vec<Value>,
}

impl Report {
    /// The last line of a client.
    pub fn print(&self, error: Option<String>) {
        print(&json!({
            "ok": error.is_none(), "downloads": self.downloads, "resumed": self.resumed, "early_data": self.early_data,
            "version_negotiated": self.version_negotiated, "paths": self.paths, "error": error,
        }));
    }
}

/// Prints a line.
pub fn print(line: &Value) {
    let mut out = std::io::stdout().lock();
    // Nobody may be listening any more.
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}
