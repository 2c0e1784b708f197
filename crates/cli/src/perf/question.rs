//! Questions about a connection, asked on a stream of it: `plait-perf` alone.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::datagrams::DatagramReport;
use super::dialer::Dialer;
use super::head::{Head, Question};
use super::pipe::PipeError;
use crate::http::policies::{Named, Wish};

/// Longest question, bytes after the head.
pub(crate) const MAX_QUESTION_BYTES: usize = 1024;
/// Longest answer that is read, bytes.
const MAX_ANSWER_BYTES: usize = 4096;

/// What a server measured of its own side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ServerReport {
    /// CPU time of the server's process so far, user and system; none where the system does not say.
    pub(crate) cpu_seconds: Option<f64>,
    /// Datagrams of this connection.
    pub(crate) datagrams: DatagramReport,
    /// True where full packets are not read.
    #[serde(default)]
    pub(crate) null_receiver: bool,
    /// By which controller its kernel sends on this connection, over TCP; none where the system does not say.
    #[serde(default)]
    pub(crate) congestion: Option<String>,
}

/// Asks for the policies that are wished for; tells those that act.
pub(crate) async fn ask_policies(dialer: &Dialer, wish: &Wish, patience: Duration) -> Option<Named> {
    Named::read(&ask(dialer, Question::Policies, wish.query(), patience).await?)
}

/// Asks what the server measured.
pub(crate) async fn ask_report(dialer: &Dialer, patience: Duration) -> Option<ServerReport> {
    read_json(&ask(dialer, Question::Report, String::new(), patience).await?)
}

fn read_json<T: DeserializeOwned>(answer: &[u8]) -> Option<T> {
    serde_json::from_slice(answer).ok()
}

/// The answer; none from a server that does not know questions, or takes too long.
async fn ask(dialer: &Dialer, question: Question, text: String, patience: Duration) -> Option<Vec<u8>> {
    if !dialer.knows_questions() {
        return None;
    }
    let asking = async {
        let (mut writer, mut reader) = dialer.open().await?;
        writer.begin(Head::Question(question), None).await?;
        writer.write_all(text.into()).await?;
        writer.finish().await?;
        let mut answer = Vec::new();
        while let Some(piece) = reader.read().await? {
            if answer.len() + piece.len() > MAX_ANSWER_BYTES {
                return Err(PipeError::Gone("the answer is too long".into()));
            }
            answer.extend_from_slice(&piece);
        }
        Ok(answer)
    };
    tokio::time::timeout(patience, asking).await.ok()?.ok()
}
