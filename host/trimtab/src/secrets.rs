//! The Secrets that are declared, and what else the configuration calls sensitive, so that no other
//! object's record shows what they hold: as they are declared, and as they are live.

use std::sync::Arc;
use trimtab_core::identity::GroupKind;
use trimtab_core::object::{Desired, Live};
use trimtab_core::redact::Redactor;
use trimtab_kube::Store;

/// This redactor, aware of the Secrets among these objects.
pub(crate) fn redactor<'o>(
    redactor: &Redactor,
    objects: impl Iterator<Item = &'o Arc<Desired>>,
    store: &Store,
) -> Redactor {
    let secrets = objects.filter(|desired| redactor.concerns(&desired.key.group_kind));
    let texts: Vec<(GroupKind, Arc<[u8]>)> = secrets
        .flat_map(|desired| {
            let live = match store.live(&desired.key, &desired.gvk) {
                Live::Present(live) => Some(live.json),
                _ => None,
            };
            let kind = &desired.key.group_kind;
            let both = [Some(desired.json.clone()), live].into_iter().flatten();
            both.map(|json| (kind.clone(), json))
        })
        .collect();
    redactor.aware_of(texts.iter().map(|(kind, json)| (kind, &**json)))
}
