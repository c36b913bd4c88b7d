//! A grants file, as an administrator may have got it from a stranger.

use crate::MESSAGE_BYTES;
use trimtab_core::grant::Namespaces;
use trimtab_settings::grants::{limits, parse};
use trimtab_wasm::Limits;

/// Any text: what is read grants no more than a host can give, and what is refused says where.
pub fn grants(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = parse(text, "g.yaml");
    assert_eq!(read, parse(text, "g.yaml"), "another answer");
    let grants = match read {
        Ok(grants) => grants,
        Err(problem) => {
            assert!(problem.starts_with("g.yaml"), "{problem}");
            assert!(!problem.chars().any(char::is_control), "a control character in {problem:?}");
            assert!(problem.len() <= text.len() * 8 + MESSAGE_BYTES, "{} bytes", problem.len());
            return;
        }
    };
    for grant in grants {
        assert!(!grant.kinds.is_empty() && !grant.actions.is_empty());
        assert_ne!(grant.namespaces, Namespaces::Only(Default::default()));
        let budgets = &grant.terms.budgets;
        assert!(budgets.writes_per_minute > 0 && budgets.actions_per_pass > 0);
        for denial in &grant.terms.allow {
            assert!(denial.can_concern(&grant.kinds, grant.cluster_scoped), "{denial}");
        }
        let (given, top) = (limits(&grant.terms.limits), Limits::CEILING);
        assert!(given.wall_time <= top.wall_time && !given.wall_time.is_zero());
        assert!(given.memory_bytes <= top.memory_bytes && given.output_bytes <= top.output_bytes);
        assert!(given.hostcall_fuel <= top.hostcall_fuel && given.handles <= top.handles);
        assert!(given.log_lines <= top.log_lines && given.log_bytes <= top.log_bytes);
        assert!(given.lookups <= top.lookups && given.lookup_bytes <= top.lookup_bytes);
    }
}
