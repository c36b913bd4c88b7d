//! What the guest can be told to do. The numbers are those of the table in `tests/guests/README.md`.

mod p01_infinite_loop;
mod p03_memory_bomb;
mod p05_deep_recursion;
mod p06_huge_output;
mod p11_panic;
mod p15_host_calls;
mod p17_ungranted_kind;
mod p18_cross_namespace;
mod p19_cluster_scope;
mod p20_aliases;
mod p21_names;
mod p22_wrappers;
mod p23_escalation;
mod p24_privileged_pods;
mod p25_foreign_identity;
mod p26_power_kinds;
mod p27_namespace_labels;
mod p28_owner_references;
mod p29_finalizers;
mod p30_bookkeeping;
mod p31_secret_canary;
mod p32_log_flood;
mod p33_nondeterminism;
mod p34_oscillation;
mod p35_action_storm;
mod p36_leaked_state;

use trimtab_sdk::{Comparison, NoComparison, Snapshot, Verdict};

/// One way to misbehave.
pub struct Behaviour {
    /// Its number in the table.
    pub number: u8,
    /// What the annotation says to have it.
    pub name: &'static str,
    pub(crate) act: Act,
}

type Compared<'s> = Result<Comparison<'s>, NoComparison>;

/// Where it misbehaves; the other call is answered honestly.
#[derive(Clone, Copy)]
pub(crate) enum Act {
    /// When it is asked whether anything differs.
    Compare(for<'s, 'a> fn(&'s Snapshot<'a>) -> Compared<'s>),
    /// When it is asked what to do.
    Decide(for<'a> fn(&Snapshot<'a>) -> Verdict),
}

/// All of them, in the table's order.
pub const BEHAVIOURS: &[Behaviour] = &[
    compare(1, "infinite-loop", p01_infinite_loop::compare),
    compare(3, "memory-bomb", p03_memory_bomb::compare),
    compare(5, "deep-recursion", p05_deep_recursion::compare),
    decide(6, "huge-output", p06_huge_output::decide),
    compare(11, "panic", p11_panic::compare),
    compare(15, "host-calls", p15_host_calls::compare),
    decide(17, "ungranted-kind", p17_ungranted_kind::decide),
    decide(18, "cross-namespace", p18_cross_namespace::decide),
    decide(19, "cluster-scope", p19_cluster_scope::decide),
    decide(20, "aliases", p20_aliases::decide),
    decide(21, "names", p21_names::decide),
    decide(22, "wrappers", p22_wrappers::decide),
    decide(23, "escalation", p23_escalation::decide),
    decide(24, "privileged-pods", p24_privileged_pods::decide),
    decide(25, "foreign-identity", p25_foreign_identity::decide),
    decide(26, "power-kinds", p26_power_kinds::decide),
    decide(27, "namespace-labels", p27_namespace_labels::decide),
    decide(28, "owner-references", p28_owner_references::decide),
    decide(29, "finalizers", p29_finalizers::decide),
    decide(30, "bookkeeping", p30_bookkeeping::decide),
    decide(31, "secret-canary", p31_secret_canary::decide),
    decide(32, "log-flood", p32_log_flood::decide),
    decide(33, "nondeterminism", p33_nondeterminism::decide),
    decide(34, "oscillation", p34_oscillation::decide),
    decide(35, "action-storm", p35_action_storm::decide),
    decide(36, "leaked-state", p36_leaked_state::decide),
];

const fn compare(
    number: u8,
    name: &'static str,
    act: for<'s, 'a> fn(&'s Snapshot<'a>) -> Compared<'s>,
) -> Behaviour {
    Behaviour { number, name, act: Act::Compare(act) }
}

const fn decide(
    number: u8,
    name: &'static str,
    act: for<'a> fn(&Snapshot<'a>) -> Verdict,
) -> Behaviour {
    Behaviour { number, name, act: Act::Decide(act) }
}
