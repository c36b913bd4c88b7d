//! What policies cost: a pass with two of them against one without, beside one call of the sandbox.
//!
//! The policies are `tests/guests/policy` in the sandbox, twice; they read the object and allow it. So
//! what is measured is the way there and back, which every policy has.

use crate::objects::{self, deployment};
use crate::stats::interleave;
use crate::table::Table;
use anyhow::{Context as _, Result, ensure};
use std::hint::black_box;
use std::sync::Arc;
use trimtab_core::decision::Comparison;
use trimtab_core::object::Live;
use trimtab_core::plugin::KindPattern;
use trimtab_core::policy::{Point, Policy, PolicyTerms, Proposed, Request, Reviewer, Verdict};
use trimtab_core::redact::Redactor;
use trimtab_core::{decision::ActionKind, grant::Mode, policy};
use trimtab_kube::ApiServer;
use trimtab_system_tests::{Built, Cluster, workspace};
use trimtab_wasm::{Lookups, NoLookups, Plugin, Reviewing, Sandbox, SandboxOptions};

const ROUNDS: usize = 200;
const CALLS: u32 = 10;
/// Two policies cost at most so many sandbox calls.
const TWO_TO_CALL: f64 = 2.0;

/// Measures with objects as the server stores them.
pub(crate) async fn measure(
    cluster: &Cluster,
    server: &ApiServer,
    wasm: &[u8],
    table: &mut Table,
) -> Result<()> {
    let declared = deployment("default", "policies");
    let desired = Arc::new(objects::desired(&declared)?);
    let facts = objects::facts(server, &desired.gvk).await?;
    let (_, drifted) = crate::decision::live_states(cluster, &declared).await?;
    let sandbox = Sandbox::new(SandboxOptions::default())?;
    let judge = Plugin::load(wasm, &sandbox)?;
    let reviewer = Plugin::load(&policy_file()?, &sandbox)?;
    let live = objects::live(&drifted)?;
    let snapshot = objects::snapshot(desired.clone(), Live::Present(live.clone()), facts);
    let lookups: Arc<dyn Lookups> = Arc::new(NoLookups);
    let request = Request {
        point: Point::BeforeWrite,
        live: Some(live.json),
        change: Some(Proposed {
            action: ActionKind::ApplyDesired,
            paths: vec!["/spec/template/spec/containers/[name=web]/image".into()],
            creates: false,
            content: None,
        }),
        ..Request::enters(&desired, Arc::default(), 0)
    };
    ensure!(reviewer.review(&request, b"{}")? == Verdict::Allow, "the policy allows it");
    let whole = |comparison| match comparison {
        Comparison::Different(found) => found,
        _ => vec![],
    };
    let pass = || drop(black_box(judge.judge(&snapshot, &lookups, whole)));
    let call = || drop(black_box(judge.compare(&snapshot, &lookups)));
    let two = || {
        for _ in 0..2 {
            let _ = black_box(reviewer.review(&request, b"{}"));
        }
    };
    let pair = interleave(ROUNDS, CALLS, two, call);
    let names = ("two policies", "call");
    table.ratio("two policies against one sandbox call", names, &pair, TWO_TO_CALL);
    let pair = interleave(
        ROUNDS,
        CALLS,
        || {
            pass();
            two();
        },
        pass,
    );
    table.told_ratio(
        "  a pass's judgement with two policies, of one without",
        ("with", "without"),
        &pair,
    );

    // As the engine asks: on blocking threads, in turns, redacted.
    let policy = |name: &str| {
        let terms = PolicyTerms { mode: Mode::Enforce, ..PolicyTerms::default() };
        let mut plugin = reviewer.identity().clone();
        plugin.name = name.to_owned();
        let policy = Policy { plugin, claims: vec![KindPattern::Any], terms, granted: true };
        Arc::new(Reviewing::new(reviewer.clone(), policy)) as Arc<dyn Reviewer>
    };
    let reviewers = [policy("one"), policy("two")];
    let redactor = Redactor::new([7; 32]);
    let handle = tokio::runtime::Handle::current();
    let asked = || {
        tokio::task::block_in_place(|| {
            let opinions = handle.block_on(policy::ask(&reviewers, &request, &redactor));
            assert_eq!(opinions.len(), 2, "both are asked");
        });
    };
    let pair = interleave(ROUNDS, CALLS, asked, call);
    table.told_ratio("  asked as the engine does, of one sandbox call", ("asked", "call"), &pair);
    Ok(())
}

/// The guest of the tests, built for the sandbox.
fn policy_file() -> Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let crate_dir = workspace().join("tests/guests/policy");
    Built::find()?.output(&[
        "plugin".as_ref(),
        "build".as_ref(),
        crate_dir.as_os_str(),
        "--out".as_ref(),
        folder.path().as_os_str(),
    ])?;
    std::fs::read(folder.path().join("obedient.wasm")).context("the policy was not built")
}
