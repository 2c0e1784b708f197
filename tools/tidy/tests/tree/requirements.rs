//! Every MUST of the RFCs has code and a test that cite it, or a reason; every citation names what its RFC holds.

use plait_tidy::requirements::{Citation, List, Place, citations, cited_in, faults, lists, rows};

fn list() -> List {
    let text = "Sections: 1 1.1 1.2 1.3 2 A A.1\nCounted: 3\n\n\
                | id | word | who | what | why not |\n|---|---|---|---|---|\n\
                | 1.1-1 | MUST | both | speaks | |\n| 1.1-2 | MUST NOT | both | shouts | |\n\
                | 2-1 | MUST | IANA | lists | for IANA |\n";
    List::parse(7, text)
}

#[test]
fn nothing_is_left_open() {
    let lists = lists();
    assert_eq!(lists.iter().map(|l| l.rfc).collect::<Vec<_>>(), [9000, 9001, 9002, 9221, 10069]);
    let faults = faults(&lists, &citations(&lists));
    assert!(faults.is_empty(), "{} faults:\n  {}", faults.len(), faults.join("\n  "));
}

#[test]
fn lists_are_read_and_checked() {
    let list = list();
    assert_eq!((list.sections.len(), list.counted, list.requirements.len()), (7, 3, 3));
    assert_eq!((list.requirements[1].id(), list.requirements[1].asks.as_str()), ("1.1-2".to_owned(), "shouts"));
    assert_eq!(list.requirements[2].why_not, "for IANA");
    assert!(list.faults().is_empty());
    let gap = List::parse(7, "Sections: 1\nCounted: 2\n| 1-2 | MUST | both | x | |\n| 3-1 | OUGHT | | | |\n");
    assert_eq!(gap.faults().len(), 3, "{:?}", gap.faults());
}

#[test]
fn citations_are_found_in_lists_and_ranges() {
    let cited = |line: &str| -> Vec<String> {
        let show = |(s, n): &(String, Option<usize>)| n.map_or(s.clone(), |n| format!("{s}-{n}"));
        cited_in(line, &list()).iter().map(show).collect()
    };
    assert_eq!(cited("// RFC 7 1.1: said"), ["1.1"]);
    assert_eq!(cited("// RFC 7 1.1-2, 1.2 and A.1."), ["1.1-2", "1.2", "A.1"]);
    assert_eq!(cited("/// (RFC 7 1.1 to 2; RFC 8 9)"), ["1.1", "1.2", "1.3", "2"]);
    assert_eq!(cited("// RFC 7 1.1, 3 times at most; RFC 7 2"), ["1.1", "2"]);
    assert_eq!(cited("// RFC 7 Appendix; RFC 77 1"), Vec::<String>::new());
}

#[test]
fn a_section_with_several_lines_wants_tests_that_say_which() {
    let lists = [list()];
    let citation = |section: &str, ordinal, place, at: &str| Citation {
        rfc: 7,
        section: section.to_owned(),
        ordinal,
        place,
        at: at.to_owned(),
    };
    let all = [
        citation("1.1", None, Place::Code, "a"),
        citation("1.1", None, Place::Test, "b"),
        citation("1.1", Some(2), Place::Test, "c"),
        citation("9", None, Place::Code, "d"),
        citation("1.1", Some(3), Place::Test, "e"),
    ];
    let table = rows(&lists, &all);
    assert_eq!((table[0].code.clone(), table[0].tests.clone()), (vec!["a"], vec![]));
    assert_eq!(table[1].tests, ["c"]);
    let faults = faults(&lists, &all);
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(faults[0].starts_with("no test for RFC 7 1.1-1"));
}
