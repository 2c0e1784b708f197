//! Figures on a few points: they finish and say what they should.

use std::sync::atomic::AtomicBool;

use super::{FigureRequest, figure, list};

#[test]
fn small_figures() {
    let stop = AtomicBool::new(false);
    let request = FigureRequest {
        points: Some(2),
        sets: vec!["transfer.bytes=300000".into()],
        jobs: 2,
        out: None,
        commit: "test".into(),
        stop: &stop,
        progress: &|_, _, _| {},
    };
    for name in ["conext-fig4", "conext-fig3", "multiflow-fig5", "multiflow-fig6", "ns3-fig9", "never-worse"] {
        let (text, files, _) = figure(name, &request).unwrap();
        assert!(text.contains("published:") && files.is_empty(), "{text}");
    }
    assert!(figure("conext-fig12", &request).unwrap_err().to_string().contains("accepted: conext-fig3"));
    assert_eq!(list().count(), 20);
}
