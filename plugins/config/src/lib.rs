//! Configuration: ConfigMap and Secret.
//!
//! What is special about them is the comparison's knowledge: base64 and `stringData`, a Secret's
//! type, and that `immutable: true` is a promise to which the API server holds people: neither
//! content nor the promise itself can change any more. Here it is shown what follows from it.

use trimtab_sdk::{Comparison, NoComparison, Reconciler, Snapshot};

/// Reconciles configuration.
pub struct Config;

impl Reconciler for Config {
    fn compare<'s>(snapshot: &'s Snapshot<'_>) -> Result<Comparison<'s>, NoComparison> {
        trimtab_sdk::compare(snapshot)
    }
}

trimtab_sdk::export!(Config);

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_sdk::testing::Case;

    fn config_map(color: &str, more: &str) -> String {
        format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a","namespace":"shop"
            {more}}},"immutable":true,"data":{{"color":"{color}"}}}}"#
        )
    }

    #[test]
    fn content_that_was_sealed_is_left_and_reported() {
        let run = Case::new().desired(config_map("blue", "")).live(config_map("red", ""));
        let run = run.run::<Config>();
        assert!(run.contains("leave: immutable_field: /data cannot change"), "{run}");
    }

    #[test]
    fn sealed_content_is_made_anew_where_the_object_says_so() {
        let policy = r#","annotations":{"trimtab.dev/on-immutable":"recreate"}"#;
        let case = Case::new().desired(config_map("blue", policy)).live(config_map("red", policy));
        case.check::<Config>(
            r#"
            changed /data/color "blue" <- "red"
            recreate
            finding warning immutable-field-recreated /data
            "#,
        );
    }

    #[test]
    fn what_is_not_content_can_change_also_of_a_sealed_one() {
        let labels = r#","labels":{"a":"b"}"#;
        let run = Case::new().desired(config_map("blue", labels)).live(config_map("blue", ""));
        let run = run.run::<Config>();
        assert!(run.ends_with("apply-desired\n"), "{run}");
    }

    #[test]
    fn the_seal_itself_cannot_be_taken_off() {
        let open = config_map("blue", "").replace(r#""immutable":true"#, r#""immutable":false"#);
        let run = Case::new().desired(open).live(config_map("blue", "")).run::<Config>();
        assert!(run.contains("leave: immutable_field: /immutable cannot change"), "{run}");
    }
}
