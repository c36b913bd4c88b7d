//! The terms of a source: what everything that it declares is held to, whatever a plugin decides.
//!
//! Each [`Desired`](crate::object::Desired) carries its source's terms, and the gate reads them
//! there: whether anything is written at all, how far the source reaches, and as whom the API
//! server is asked.

use crate::approval;
use crate::grant::{Mode, Refusal};
use crate::identity::ObjectKey;
use crate::prune::Rules;
use std::fmt;
use std::sync::Arc;

/// A ServiceAccount that requests are made as. Neither part is ever empty: an empty claim is one
/// that an API server does not see, and the request would be made with the host's own rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    namespace: Box<str>,
    name: Box<str>,
}

impl Account {
    /// Reads `NAMESPACE/NAME`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no NAMESPACE/NAME of a ServiceAccount");
        let (namespace, name) = text.split_once('/').ok_or_else(wrong)?;
        if !is_label(namespace) || name.len() > 253 || !name.split('.').all(is_label) {
            return Err(wrong());
        }
        Ok(Self { namespace: namespace.into(), name: name.into() })
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The user that the API server knows it as.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// The groups that the API server puts it into.
    pub fn groups(&self) -> [String; 3] {
        [
            "system:serviceaccounts".into(),
            format!("system:serviceaccounts:{}", self.namespace),
            "system:authenticated".into(),
        ]
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What a source's objects are held to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTerms {
    /// Observe: nothing of the source is written, whatever a grant says.
    pub mode: Mode,
    /// The one namespace that the source reaches; `None`: any, and the cluster's scope.
    pub confined_to: Option<Arc<str>>,
    /// Whom writes and dry runs are made as; `None`: the host itself.
    pub acts_as: Option<Arc<Account>>,
    /// Whether what the source declares no more may be deleted.
    pub prune: bool,
    /// How much of that at once, and which kinds.
    pub deletion: Rules,
    /// Which changes wait for a person.
    pub approval: approval::Rules,
}

impl Default for SourceTerms {
    fn default() -> Self {
        Self {
            mode: Mode::Enforce,
            confined_to: None,
            acts_as: None,
            prune: false,
            deletion: Rules::default(),
            approval: approval::Rules::default(),
        }
    }
}

impl SourceTerms {
    /// Whether the source reaches this object.
    ///
    /// # Errors
    /// The refusal that says why not.
    pub fn reaches(&self, key: &ObjectKey) -> Result<(), Refusal> {
        let Some(only) = &self.confined_to else { return Ok(()) };
        if key.namespace.as_ref() == Some(only) {
            return Ok(());
        }
        Err(Refusal { reason: "OutsideTargetNamespace", message: outside(only, key) })
    }
}

/// Why a source that is confined to `only` may not declare this object.
pub(crate) fn outside(only: &str, key: &ObjectKey) -> String {
    let place = match &key.namespace {
        Some(namespace) => format!("is in namespace {namespace}"),
        None => "is cluster-scoped".into(),
    };
    format!("{key} {place}, and targetNamespace holds its source to {only}")
}

/// A label of RFC 1123: what namespaces and ServiceAccounts are named by.
pub fn is_label(text: &str) -> bool {
    let end = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    bytes.len() <= 63 && end(bytes.first()) && end(bytes.last()) && bytes.iter().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::GroupKind;

    #[test]
    fn an_account_has_two_names_and_neither_is_empty() {
        let account = Account::parse("shop/deployer.v2").unwrap();
        assert_eq!(account.user(), "system:serviceaccount:shop:deployer.v2");
        assert_eq!(account.groups()[1], "system:serviceaccounts:shop");
        for text in [
            "",
            "/",
            "shop",
            "shop/",
            "/deployer",
            "shop/a/b",
            "Shop/a",
            "shop/a ",
            "shop/.",
            "a:b/c",
        ] {
            assert!(Account::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_confined_source_reaches_its_namespace_and_nothing_else() {
        let terms = SourceTerms { confined_to: Some("shop".into()), ..SourceTerms::default() };
        let key = |namespace| ObjectKey::new(GroupKind::new("", "ConfigMap"), namespace, "c");
        assert!(terms.reaches(&key("shop")).is_ok());
        for namespace in ["", "shop2", "kube-system"] {
            assert!(terms.reaches(&key(namespace)).is_err(), "{namespace}");
        }
        assert!(SourceTerms::default().reaches(&key("")).is_ok());
    }
}
