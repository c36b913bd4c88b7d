//! Cases of policies.

use super::{Identity, NOW_MS, line, shown_path};
use crate::review::Parts;
use crate::{ActionKind, ObjectId, Planned, Point, Policy, Provenance, Review, ReviewVerdict};

/// One case of a policy: what it is shown. Everything that is not set is absent.
///
/// ```
/// # use trimtab_sdk::{Policy, Reason, Review, ReviewVerdict};
/// # struct NoSecrets;
/// # impl Policy for NoSecrets {
/// #     fn review(review: &Review<'_>) -> ReviewVerdict {
/// #         match review.id().kind {
/// #             "Secret" => ReviewVerdict::deny(Reason::new("plain-secret", "keep it elsewhere")),
/// #             _ => ReviewVerdict::Allow,
/// #         }
/// #     }
/// # }
/// use trimtab_sdk::testing::ReviewCase;
///
/// ReviewCase::new()
///     .desired(r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}"#)
///     .check::<NoSecrets>("deny plain-secret");
/// ```
///
/// The expectation is `allow`, or one line for each reason, in order: `deny CONTROL [PATH]` or
/// `warn CONTROL [PATH]`.
#[derive(Clone, Debug)]
pub struct ReviewCase {
    id: Identity,
    desired: Option<String>,
    live: Option<String>,
    content: Option<String>,
    change: Option<(ActionKind, Vec<String>)>,
    configuration: String,
    source: String,
    author: Option<String>,
    signers: Vec<String>,
    now_ms: u64,
}

impl Default for ReviewCase {
    fn default() -> Self {
        Self {
            id: Identity::default(),
            desired: None,
            live: None,
            content: None,
            change: None,
            configuration: "null".into(),
            source: "case".into(),
            author: None,
            signers: Vec::new(),
            now_ms: NOW_MS,
        }
    }
}

impl ReviewCase {
    /// Nothing desired, nothing live; desired state enters.
    pub fn new() -> Self {
        Self::default()
    }

    /// The object as declared, as JSON text.
    #[must_use]
    pub fn desired(mut self, json: impl Into<String>) -> Self {
        let json = json.into();
        self.id = Identity::of(&json);
        self.desired = Some(json);
        self
    }

    /// The object as the API server has it, as JSON text.
    #[must_use]
    pub fn live(mut self, json: impl Into<String>) -> Self {
        let json = json.into();
        if self.desired.is_none() {
            self.id = Identity::of(&json);
        }
        self.live = Some(json);
        self
    }

    /// The point is before a write, and this is the change.
    #[must_use]
    pub fn change(mut self, action: ActionKind, paths: &[&str]) -> Self {
        self.change = Some((action, paths.iter().map(ToString::to_string).collect()));
        self
    }

    /// What is applied instead of desired, as JSON text: content of a plugin's making.
    #[must_use]
    pub fn content(mut self, json: impl Into<String>) -> Self {
        self.content = Some(json.into());
        self
    }

    /// The policy's configuration, as JSON text.
    #[must_use]
    pub fn configuration(mut self, json: impl Into<String>) -> Self {
        self.configuration = json.into();
        self
    }

    /// The source's name.
    #[must_use]
    pub fn source(mut self, name: impl Into<String>) -> Self {
        self.source = name.into();
        self
    }

    /// Who the commit says its author is.
    #[must_use]
    pub fn author(mut self, name: impl Into<String>) -> Self {
        self.author = Some(name.into());
        self
    }

    /// Who vouches for it, the head commit's signer first.
    #[must_use]
    pub fn signers(mut self, names: &[&str]) -> Self {
        self.signers = names.iter().map(ToString::to_string).collect();
        self
    }

    /// The time, in milliseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn now_ms(mut self, now_ms: u64) -> Self {
        self.now_ms = now_ms;
        self
    }

    /// What the policy answers.
    pub fn run<T: Policy>(&self) -> ReviewVerdict {
        match Review::read(self.parts()) {
            Ok(review) => T::review(&review),
            Err(reason) => ReviewVerdict::deny(reason),
        }
    }

    /// Runs the case and compares what came of it with the expectation.
    ///
    /// # Panics
    /// If they differ, with both and the reasons' messages.
    pub fn check<T: Policy>(&self, expected: &str) {
        let verdict = self.run::<T>();
        let mut found = String::new();
        let (word, reasons) = match &verdict {
            ReviewVerdict::Allow => ("allow", &[][..]),
            ReviewVerdict::Warn(reasons) => ("warn", &reasons[..]),
            ReviewVerdict::Deny(reasons) => ("deny", &reasons[..]),
        };
        if reasons.is_empty() {
            line(&mut found, format_args!("{word}"));
        }
        for reason in reasons {
            let at = reason.path.as_ref().map(|path| format!(" {}", shown_path(path)));
            line(&mut found, format_args!("{word} {}{}", reason.control, at.unwrap_or_default()));
        }
        let lines = expected.lines().map(str::trim).filter(|line| !line.is_empty());
        let expected = lines.fold(String::new(), |all, line| all + line + "\n");
        assert!(found == expected, "expected:\n{expected}\nfound:\n{found}\n{verdict:?}");
    }

    fn parts(&self) -> Parts<'_> {
        let Identity { group, version, kind, namespace, name } = &self.id;
        Parts {
            point: if self.change.is_some() { Point::BeforeWrite } else { Point::Enters },
            id: ObjectId { group, version, kind, namespace, name },
            desired: self.desired.as_deref().map(str::as_bytes),
            live: self.live.as_deref().map(str::as_bytes),
            change: self.change.as_ref().map(|(action, paths)| {
                let change = Planned {
                    action: *action,
                    paths: paths.iter().map(String::as_str).collect(),
                    creates: self.live.is_none(),
                };
                (change, self.content.as_deref().map(str::as_bytes))
            }),
            provenance: Provenance {
                source: &self.source,
                revision: None,
                file: None,
                line: None,
                author: self.author.as_deref(),
                signers: self.signers.iter().map(String::as_str).collect(),
            },
            configuration: self.configuration.as_bytes(),
            now_ms: self.now_ms,
        }
    }
}
