//! Asks for what hands out power: webhooks, definitions, API services, certificates, volumes.

use crate::content::{and_apply, with};
use trimtab_sdk::{Action, Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    and_apply([
        with(snapshot, "metadata labels", r#"{"made":"1"}"#),
        Action::Adopt,
        Action::Recreate,
    ])
}
