//! Figures on a few points: they finish and say what they should.

use std::sync::atomic::AtomicBool;

use super::{FigureRequest, figure, list};
use crate::command::Pictures;
use crate::policies::Policies;

#[test]
fn small_figures() {
    let stop = AtomicBool::new(false);
    let request = FigureRequest {
        points: Some(2),
        sets: vec!["transfer.bytes=300000".into()],
        jobs: 2,
        out: None,
        pictures: Pictures::None,
        commit: "test".into(),
        policies: Policies::new(),
        stop: &stop,
        progress: &|_, _, _| {},
    };
    for name in ["conext-fig4", "conext-fig3", "multiflow-fig5", "multiflow-fig6", "ns3-fig9", "never-worse"] {
        let made = figure(name, &request).unwrap();
        assert!(made.text().contains("published:") && made.files.is_empty(), "{}", made.text());
        let rows: Vec<String> = made.markdown().lines().map(str::to_owned).collect();
        assert!(rows.iter().all(|row| row.replace("\\|", "").matches('|').count() == 5), "{rows:?}");
        assert!(!made.figure.notes.is_empty(), "{name} says nowhere why it differs");
    }
    assert!(figure("conext-fig12", &request).unwrap_err().to_string().contains("accepted: conext-fig3"));
    assert_eq!(list().count(), 20);
}
