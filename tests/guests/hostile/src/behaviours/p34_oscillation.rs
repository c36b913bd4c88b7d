//! Never leaves its object as it is: what it wrote last is wrong the next time. It is asked again
//! because it wants to be, or because it wrote an object that this one reads.

use crate::content::with;
use crate::shape;
use std::time::Duration;
use trimtab_sdk::{Decision, Snapshot, Verdict, lookup};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    let live = snapshot.live().and_then(|live| live.str_at(&["spec", "course"]));
    let other = if live == Some("port") { r#""starboard""# } else { r#""port""# };
    let decision = Decision::new().action(with(snapshot, "spec course", other));
    if shape(snapshot) != "pair" {
        return decision.look_again_after(Duration::from_secs(1)).into();
    }
    let id = snapshot.id();
    let partner = if id.name == "b" { "c" } else { "b" };
    match lookup::get("hostile.example", "Trial", id.namespace, partner) {
        Ok(_) => decision.into(),
        Err(why) => Verdict::unknown(why.to_string()),
    }
}
