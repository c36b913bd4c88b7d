//! Never leaves its object as it is: what it wrote last is wrong the next time.

use crate::content::with;
use std::time::Duration;
use trimtab_sdk::{Decision, Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    let live = snapshot.live().and_then(|live| live.str_at(&["spec", "course"]));
    let other = if live == Some("port") { r#""starboard""# } else { r#""port""# };
    Decision::new()
        .action(with(snapshot, "spec course", other))
        .look_again_after(Duration::from_secs(1))
        .into()
}
