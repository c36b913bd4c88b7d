//! Policies before a write: nothing that one stops is written, by any way through the pass.

use super::*;
use crate::decision::ActionKind as Kind;
use crate::policy::{
    Answer, OnError, Opinion, Point, Policies, Policy, PolicyTerms, Reason, Request, Reviewer,
    Said, Verdict as Ruling,
};
use crate::record::Next;

/// Answers what it is told, and notes what it was shown.
#[derive(Debug)]
struct Told {
    policy: Policy,
    answer: Result<Ruling, PluginFault>,
    seen: Mutex<Vec<Request>>,
}

impl Reviewer for Told {
    fn policy(&self) -> &Policy {
        &self.policy
    }

    fn review<'a>(&'a self, request: &'a Request) -> Answer<'a> {
        self.seen.lock().unwrap().push(request.clone());
        let answer = self.answer.clone();
        Box::pin(async move { answer })
    }
}

fn reasons() -> Vec<Reason> {
    let reason = |control: &str| Reason {
        control: control.into(),
        message: "hunter2 is in it".into(),
        path: Some("/data/a".into()),
    };
    vec![reason("no-a")]
}

fn deny() -> Result<Ruling, PluginFault> {
    Ok(Ruling::Deny(reasons()))
}

fn told(mode: Mode, on_error: OnError, answer: Result<Ruling, PluginFault>) -> Arc<Told> {
    let plugin =
        PluginIdentity { name: "guard".into(), version: "2.0.0".into(), digest: Digest::of(b"g") };
    let terms = PolicyTerms { mode, on_error, ..PolicyTerms::default() };
    let policy = Policy { plugin, claims: vec![KindPattern::Any], terms, granted: true };
    Arc::new(Told { policy, answer, seen: Mutex::default() })
}

fn under_policies(mut script: Script, policies: &[&Arc<Told>]) -> Script {
    let reviewers: Vec<Arc<dyn Reviewer>> =
        policies.iter().map(|it| Arc::clone(it) as Arc<dyn Reviewer>).collect();
    script.bounds.policies = Policies { reviewers: reviewers.into(), ..Policies::default() };
    script
}

fn wrote(script: &Script) -> bool {
    let writes = ["apply", "create", "patch", "delete", "status", "intent"];
    script.calls().iter().any(|call| writes.iter().any(|word| call.starts_with(word)))
}

#[test]
fn what_a_policy_denies_is_not_written_and_the_record_names_policy_and_control() {
    let policy = told(Mode::Enforce, OnError::Deny, deny());
    let script = under_policies(Script::drift(), &[&policy]);
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
    assert_eq!(record.outcome.as_str(), "denied");
    let message = record.outcome.message();
    assert!(message.contains("policy guard 2.0.0: no-a"), "{message}");
    assert_eq!(record.outcome.next(), Next::Settle);
    assert!(!wrote(&script), "{:?}", script.calls());
    let Opinion { point, said, .. } = &record.reviews[0];
    assert_eq!((point, said), (&Point::BeforeWrite, &Said::Verdict(Ruling::Deny(reasons()))));
    let seen = policy.seen.lock().unwrap();
    let change = seen[0].change.as_ref().unwrap();
    assert_eq!(
        (change.action, &change.paths[..]),
        (Kind::ApplyDesired, &["/data/a".to_owned()][..])
    );
    assert!(seen[0].live.is_some() && seen[0].desired.is_some());
}

#[test]
fn a_policy_that_fails_closes_and_is_asked_again_unless_its_grant_has_that_warn() {
    let faults = || {
        [
            PluginFault::Trap("x".into()),
            PluginFault::Deadline(Duration::from_secs(1)),
            PluginFault::Limit("x".into()),
            PluginFault::Invalid("x".into()),
            PluginFault::Impure("x".into()),
            PluginFault::Unavailable("x".into()),
        ]
    };
    for fault in faults() {
        let policy = told(Mode::Enforce, OnError::Deny, Err(fault.clone()));
        let script = under_policies(Script::drift(), &[&policy]);
        let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
        assert!(matches!(record.outcome, Outcome::Denied { failed: true, .. }), "{record:?}");
        assert!(matches!(record.outcome.next(), Next::Retry(_)));
        assert!(!wrote(&script), "{fault:?}");
    }
    for fault in faults() {
        let policy = told(Mode::Enforce, OnError::Warn, Err(fault));
        let script = under_policies(Script::drift(), &[&policy]);
        let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
        assert_eq!(record.outcome, Outcome::Corrected);
        assert_eq!(record.reviews[0].word(), "failed");
    }
}

#[test]
fn a_policy_that_observes_stops_nothing_and_is_recorded() {
    let policy = told(Mode::Observe, OnError::Deny, deny());
    let script = under_policies(Script::drift(), &[&policy]);
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
    assert_eq!(record.outcome, Outcome::Corrected);
    assert_eq!(record.reviews.len(), 1);
    assert_eq!(record.reviews[0].word(), "deny");
}

#[test]
fn no_action_gets_past_a_policy_whatever_the_others_say() {
    let content = DESIRED.as_bytes().to_vec();
    let actions = [
        vec![Action::ApplyDesired { without: vec![] }],
        vec![Action::ApplyContent(content.clone())],
        vec![Action::RemoveFields(vec!["/data/b".into()])],
        vec![Action::Adopt],
        vec![Action::Delete],
        vec![Action::PatchStatus(
            br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"status":{}}"#
                .to_vec(),
        )],
        vec![
            Action::ApplyDesired { without: vec![] },
            Action::RemoveFields(vec!["/data/b".into()]),
        ],
    ];
    let answers = || {
        [Ok(Ruling::Allow), Ok(Ruling::Warn(reasons())), deny(), Err(PluginFault::Trap("x".into()))]
    };
    let mut written = 0;
    for manager in ["trimtab", "kubectl-edit"] {
        for actions in &actions {
            for (first, second) in
                answers().into_iter().flat_map(|a| answers().map(move |b| (a.clone(), b)))
            {
                let stops =
                    |answer: &Result<Ruling, _>| matches!(answer, Err(_) | Ok(Ruling::Deny(_)));
                let stopped = stops(&first) || stops(&second);
                let [first, second] =
                    [first, second].map(|it| told(Mode::Enforce, OnError::Deny, it));
                let mut script = under_policies(Script::drift(), &[&first, &second]);
                script.verdict = Ok(decided(actions.clone()));
                let mut power = enforce();
                power.manifest.actions = Kind::ALL.into();
                if let Some(grant) = &mut power.grant {
                    grant.actions = Kind::ALL.into();
                }
                let record = script.run(&power, &snapshot_of("ConfigMap", present(manager)));
                assert!(!(stopped && wrote(&script)), "{actions:?}: {:?}", script.calls());
                assert!(!stopped || record.after.is_none(), "{record:?}");
                written += usize::from(wrote(&script));
            }
        }
    }
    assert!(written >= 2 * 4 * 4, "what nobody stops is written: {written}");
}

#[test]
fn what_observes_shows_what_a_policy_would_say_and_nothing_decided_asks_nobody() {
    let policy = told(Mode::Enforce, OnError::Deny, deny());
    let script = under_policies(Script::drift(), &[&policy]);
    let mut power = enforce();
    power.grant = None;
    let record = script.run(&power, &snapshot_of("ConfigMap", present("trimtab")));
    assert_eq!(record.outcome.as_str(), "denied");
    assert!(!wrote(&script));
    let idle = Script { comparison: Ok(Comparison::InSync), ..Script::drift() };
    let policy = told(Mode::Enforce, OnError::Deny, deny());
    let script = under_policies(idle, &[&policy]);
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
    assert_eq!(record.outcome, Outcome::InSync);
    assert!(policy.seen.lock().unwrap().is_empty());
}

#[test]
fn of_a_secret_a_policy_has_no_words_and_without_a_grant_no_values() {
    let policy = told(Mode::Enforce, OnError::Deny, deny());
    let script = under_policies(Script::drift(), &[&policy]);
    let record = script.run(&enforce(), &snapshot_of("Secret", present("trimtab")));
    let shown = format!("{:?} {:?}", record.outcome, record.reviews);
    assert!(!shown.contains("hunter2") && !shown.contains("/data/a"), "{shown}");
    assert!(shown.contains("no-a"), "{shown}");
    let mut plain = told(Mode::Observe, OnError::Deny, deny());
    Arc::get_mut(&mut plain).unwrap().policy.granted = false;
    let script = under_policies(Script::drift(), &[&plain]);
    script.run(&enforce(), &snapshot_of("Secret", present("trimtab")));
    let seen = plain.seen.lock().unwrap();
    let desired = String::from_utf8_lossy(seen[0].desired.as_ref().unwrap()).into_owned();
    assert!(!desired.contains(r#""a":"1""#), "{desired}");
}
