//! A claim of a figure: what was measured here, beside what papers print, what others' code gave and what was asked for.

/// What a claim is held against: what each source says of it, empty where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// What a paper prints or plots.
    pub published: String,
    /// What others' code gave when it was run for comparison.
    pub elsewhere: String,
    /// What is asked of this engine.
    pub asked_for: String,
}

impl Reference {
    /// No source says anything.
    pub fn none() -> Self {
        Self::default()
    }

    /// What a paper says.
    pub fn published(text: impl Into<String>) -> Self {
        Self { published: text.into(), ..Self::default() }
    }

    /// What others' code gave.
    pub fn elsewhere(text: impl Into<String>) -> Self {
        Self { elsewhere: text.into(), ..Self::default() }
    }

    /// What is asked of this engine.
    pub fn asked_for(text: impl Into<String>) -> Self {
        Self { asked_for: text.into(), ..Self::default() }
    }
}

/// What others say of something, and what was measured here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What the claim is about.
    pub what: String,
    /// What it is held against.
    pub reference: Reference,
    /// The value measured here.
    pub ours: String,
}

/// Who says something that a claim is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// What a paper prints or plots.
    Published,
    /// Others' code, run for comparison.
    Elsewhere,
    /// The bar set for this engine.
    AskedFor,
}

impl ReferenceKind {
    /// All of them, in the order of columns.
    pub const ALL: [Self; 3] = [Self::Published, Self::Elsewhere, Self::AskedFor];

    /// The head of its column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Elsewhere => "others' code, elsewhere",
            Self::AskedFor => "asked for",
        }
    }

    /// What it says in a reference.
    pub fn of(self, reference: &Reference) -> &str {
        match self {
            Self::Published => &reference.published,
            Self::Elsewhere => &reference.elsewhere,
            Self::AskedFor => &reference.asked_for,
        }
    }
}

/// The sources that say something of one of the claims.
pub fn sources(claims: &[Claim]) -> Vec<ReferenceKind> {
    let speaks = |source: &ReferenceKind| claims.iter().any(|claim| !source.of(&claim.reference).is_empty());
    ReferenceKind::ALL.into_iter().filter(speaks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sources_that_say_something_have_a_column() {
        let claim = |reference| Claim { what: "time".into(), reference, ours: "1 s".into() };
        let both = Reference { asked_for: "at most 1 s".into(), ..Reference::published("2 s") };
        let claims = [claim(Reference::none()), claim(both), claim(Reference::none())];
        assert_eq!(sources(&claims), [ReferenceKind::Published, ReferenceKind::AskedFor]);
        assert_eq!(sources(&claims[2..]), []);
        assert_eq!(sources(&[claim(Reference::elsewhere("3 s"))]), [ReferenceKind::Elsewhere]);
    }
}
