//! The pass, driven by scripted ports: what is called, what is written, how it ends.

mod policies;

use crate::budget::{Allowance, Amount, Left};
use crate::decision::{
    Action, ActionKind, Comparison, Condition, ConditionStatus, Decision, Difference,
    DifferenceKind, Finding, Severity, Verdict,
};
use crate::fight::{self, Fights};
use crate::gate::{Change, Effect, Probe, Target};
use crate::grant::{Grant, Mode, Namespaces, Power};
use crate::identity::{Digest, GroupKind, Gvk, ObjectKey};
use crate::ignore::{Rule, Scoped};
use crate::object::{Desired, Live, LiveObject, Origin};
use crate::pass::{Bounds, World};
use crate::plugin::{KindPattern, PluginIdentity, PluginManifest};
use crate::ports::{
    ApplyError, Clock, Cluster, Journal, JournalError, Judge, OwnedField, PluginFault, Written,
};
use crate::record::{Intent, Outcome, Record, Trigger};
use crate::redact::Redactor;
use crate::snapshot::Snapshot;
use crate::succession;
use crate::terms::{Account, SourceTerms};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const DESIRED: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"n"},"data":{"a":"1"}}"#;

/// A world whose every answer is scripted and whose every call is written down.
struct Script {
    comparison: Result<Comparison, PluginFault>,
    verdict: Result<Verdict, PluginFault>,
    rehearsal: Result<String, ApplyError>,
    write: Result<(), ApplyError>,
    journal_works: bool,
    secrets: Vec<Arc<[u8]>>,
    bounds: Bounds,
    calls: Mutex<Vec<String>>,
}

impl Script {
    /// Live has `a: 2`; the plugin sees it, the server confirms it, the plugin applies desired.
    fn drift() -> Self {
        Self {
            comparison: Ok(Comparison::Different(vec![difference("/data/a")])),
            verdict: Ok(decided(vec![Action::ApplyDesired { without: vec![] }])),
            rehearsal: Ok(live("1", "trimtab")),
            write: Ok(()),
            journal_works: true,
            secrets: Vec::new(),
            bounds: Bounds::default(),
            calls: Mutex::default(),
        }
    }

    fn note(&self, call: &str) {
        self.calls.lock().unwrap().push(call.to_owned());
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }

    fn run(&self, power: &Power, snapshot: &Snapshot) -> Record {
        let redactor = Redactor::new([0; 32]);
        let world = World {
            judge: self,
            cluster: self,
            journal: self,
            clock: self,
            redactor: &redactor,
            bounds: &self.bounds,
        };
        futures::executor::block_on(world.pass(power, snapshot, Trigger::Watch))
    }
}

impl Judge for Script {
    async fn compare(&self, _: &Snapshot) -> Result<Comparison, PluginFault> {
        self.note("compare");
        self.comparison.clone()
    }

    async fn decide(&self, _: &Snapshot, seen: &[Difference]) -> Result<Verdict, PluginFault> {
        self.note(&format!("decide {}", seen.len()));
        self.verdict.clone()
    }

    fn secrets_read(&self) -> Vec<Arc<[u8]>> {
        self.secrets.clone()
    }
}

impl Cluster for Script {
    async fn rehearse(&self, probe: &Probe) -> Result<Arc<[u8]>, ApplyError> {
        self.note(if probe.force() { "rehearse by force" } else { "rehearse" });
        self.rehearsal.clone().map(|json| json.into_bytes().into())
    }

    async fn write(&self, change: &Change) -> Result<Written, ApplyError> {
        self.note(&match change.effect() {
            Effect::Apply { body, force } => {
                format!("apply force={force} {}", String::from_utf8_lossy(body))
            }
            Effect::Create { body } => format!("create {}", String::from_utf8_lossy(body)),
            Effect::Patch { body } => format!("patch {}", String::from_utf8_lossy(body)),
            Effect::Delete { uid, resource_version, orphan } => {
                format!("delete {uid} {resource_version} orphan={orphan}")
            }
            Effect::ApplyStatus { body } => format!("status {}", String::from_utf8_lossy(body)),
        });
        let json =
            live("1", "trimtab").replace(r#""resourceVersion":"7""#, r#""resourceVersion":"8""#);
        let deleted = matches!(change.effect(), Effect::Delete { .. });
        self.write.clone().map(|()| match deleted {
            true => Written::Deleted,
            false => Written::Object(json.into_bytes().into()),
        })
    }

    async fn suspects(&self, _: &Probe) -> Result<Vec<String>, String> {
        self.note("suspects");
        Ok(vec!["webhook w".into()])
    }

    async fn dependents(&self, _: &Target, _: &[u8]) -> Vec<String> {
        self.note("dependents");
        vec!["2 Pods".into()]
    }
}

impl Journal for Script {
    async fn intent(&self, intent: &Intent<'_>) -> Result<(), JournalError> {
        self.note(&format!("intent {}", intent.planned.action));
        if self.journal_works { Ok(()) } else { Err(JournalError("disk full".into())) }
    }
}

impl Clock for Script {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

fn live(value: &str, manager: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"c","namespace":"n","uid":"u1","resourceVersion":"7","managedFields":[{{"manager":"{manager}","operation":"Apply","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{{"f:data":{{"f:a":{{}}}}}}}}]}},"data":{{"a":"{value}","stray":"x > 1"}}}}"#
    )
}

fn difference(path: &str) -> Difference {
    Difference {
        path: path.into(),
        kind: DifferenceKind::Changed,
        desired: Some(br#""1""#.to_vec()),
        live: Some(br#""2""#.to_vec()),
        immutable: None,
        managers: vec![],
    }
}

fn decided(actions: Vec<Action>) -> Verdict {
    Verdict::Decided(Decision { actions, ..Decision::default() })
}

fn snapshot_of(kind: &str, live: Live) -> Snapshot {
    let gvk = Gvk::from_api_version("v1", kind);
    let key = ObjectKey::new(GroupKind::new("", kind), "n", "c");
    let json: Arc<[u8]> = DESIRED.replace("ConfigMap", kind).into_bytes().into();
    let desired = Desired {
        key: key.clone(),
        gvk: gvk.clone(),
        digest: Digest::of(&json),
        json,
        source: "s".into(),
        revision: "r".into(),
        origin: Origin { file: "a.yaml".into(), line: 1 },
        ignore: Default::default(),
        terms: Default::default(),
    };
    Snapshot {
        key,
        gvk,
        desired: Arc::new(desired),
        live,
        applied_uid: None,
        facts: Arc::default(),
        now_ms: 0,
        retries: 0,
        standoff: None,
    }
}

/// Live drifted, and the manifest says what to do where a field cannot change.
fn recreatable(kind: &str, policy: &str) -> Snapshot {
    let mut snapshot = snapshot_of(kind, present("trimtab"));
    let annotation = format!(r#""annotations":{{"trimtab.dev/on-immutable":"{policy}"}},"name""#);
    let json = String::from_utf8_lossy(&snapshot.desired.json).replace(r#""name""#, &annotation);
    let desired = Desired { json: json.into_bytes().into(), ..(*snapshot.desired).clone() };
    snapshot.desired = Arc::new(desired);
    snapshot
}

fn present(manager: &str) -> Live {
    Live::Present(LiveObject {
        json: live("2", manager).into_bytes().into(),
        uid: "u1".into(),
        resource_version: "7".into(),
        deleting: false,
    })
}

fn power(mode: Option<Mode>) -> Power {
    let actions: BTreeSet<ActionKind> =
        ActionKind::ALL.into_iter().filter(|kind| *kind != ActionKind::Adopt).collect();
    let plugin =
        PluginIdentity { name: "p".into(), version: "1.0.0".into(), digest: Digest::of(b"p") };
    Power {
        manifest: PluginManifest {
            name: "p".into(),
            version: "1.0.0".into(),
            description: String::new(),
            wit: "0.1.0".into(),
            claims: vec![KindPattern::Any],
            reads: vec![],
            actions: ActionKind::ALL.into(),
        },
        grant: mode.map(|mode| Grant {
            plugin: "p".into(),
            digest: plugin.digest,
            mode,
            kinds: vec![KindPattern::Any],
            namespaces: Namespaces::All,
            cluster_scoped: true,
            actions,
            predecessors: BTreeSet::new(),
            terms: Default::default(),
            origin: "g.yaml".into(),
        }),
        plugin,
    }
}

fn enforce() -> Power {
    power(Some(Mode::Enforce))
}

#[test]
fn a_drift_is_compared_confirmed_decided_and_written_after_its_intent() {
    let script = Script::drift();
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
    assert_eq!(record.outcome, Outcome::Corrected);
    let calls = script.calls();
    assert_eq!(calls[..4], ["compare", "rehearse by force", "decide 1", "intent apply-desired"],);
    assert!(calls[4].starts_with("apply force=true"), "{calls:?}");
    assert!(calls[4].contains(r#""uid":"u1","resourceVersion":"7""#), "preconditions: {calls:?}");
    assert_eq!(record.differences[0].managers[0].name, "trimtab");
}

#[test]
fn no_difference_means_no_decision_and_no_request() {
    let script = Script { comparison: Ok(Comparison::InSync), ..Script::drift() };
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
    assert_eq!((record.outcome, script.calls()), (Outcome::InSync, vec!["compare".to_owned()]));
}

#[test]
fn what_is_not_known_never_reaches_the_plugin() {
    let script = Script::drift();
    let live = Live::Unknown("the list is forbidden".into());
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", live));
    assert_eq!(record.outcome, Outcome::Unknown("the list is forbidden".into()));
    assert!(script.calls().is_empty());
}

#[test]
fn an_object_that_is_going_away_is_waited_for() {
    let script = Script::drift();
    let Live::Present(mut object) = present("trimtab") else { unreachable!() };
    object.deleting = true;
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", Live::Present(object)));
    assert!(matches!(record.outcome, Outcome::Waiting(_)));
    assert!(script.calls().is_empty());
}

#[test]
fn an_absent_object_is_made_without_force_and_without_a_rehearsal() {
    let script =
        Script { comparison: Ok(Comparison::Different(vec![difference("")])), ..Script::drift() };
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", Live::Absent));
    assert_eq!(record.outcome, Outcome::Created);
    assert_eq!(script.calls()[3], format!("apply force=false {DESIRED}"));
}

#[test]
fn without_a_grant_or_in_observe_mode_nothing_is_written() {
    for mode in [None, Some(Mode::Observe)] {
        let script = Script::drift();
        let record = script.run(&power(mode), &snapshot_of("ConfigMap", present("trimtab")));
        assert_eq!(record.outcome, Outcome::Observed);
        assert_eq!(record.planned[0].action, ActionKind::ApplyDesired);
        assert_eq!(script.calls(), ["compare", "rehearse by force", "decide 1"]);
    }
}

#[test]
fn what_the_grant_does_not_name_is_refused() {
    let mut power = enforce();
    power.grant.as_mut().unwrap().actions = [ActionKind::Delete].into();
    let script = Script::drift();
    let record = script.run(&power, &snapshot_of("ConfigMap", present("trimtab")));
    assert_eq!(record.outcome, Outcome::Refused);
    assert_eq!(record.refusals[0].reason, "ActionNotGranted");
    assert!(!script.calls().iter().any(|call| call.starts_with("apply")));
}

#[test]
fn outside_the_granted_namespaces_a_plugin_writes_nothing() {
    let mut power = enforce();
    power.grant.as_mut().unwrap().namespaces = Namespaces::Only(["other".to_owned()].into());
    let script = Script::drift();
    let record = script.run(&power, &snapshot_of("ConfigMap", present("trimtab")));
    assert_eq!(record.refusals[0].reason, "NamespaceNotGranted");
    assert!(!script.calls().iter().any(|call| call.starts_with("apply")));
}

#[test]
fn a_journal_that_cannot_be_written_stops_the_write() {
    let script = Script { journal_works: false, ..Script::drift() };
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
    assert!(matches!(record.outcome, Outcome::Failed { .. }));
    assert!(!script.calls().iter().any(|call| call.starts_with("apply")));
}

#[test]
fn an_object_of_another_manager_is_not_overridden_and_the_manager_is_named() {
    let owned = OwnedField { manager: "kubectl".into(), field: ".data.a".into() };
    let script = Script { rehearsal: Err(ApplyError::Conflict(vec![owned])), ..Script::drift() };
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("kubectl")));
    assert_eq!(script.calls(), ["compare", "rehearse"], "without force");
    let Outcome::Conflict(managers) = record.outcome else { panic!("{:?}", record.outcome) };
    assert_eq!((managers[0].name.as_str(), managers[0].operation.as_str()), ("kubectl", "Apply"));
}

#[test]
fn an_object_of_another_manager_is_taken_over_where_the_grant_allows_to_adopt() {
    let mut power = enforce();
    power.grant.as_mut().unwrap().actions.insert(ActionKind::Adopt);
    let script = Script::drift();
    let record = script.run(&power, &snapshot_of("ConfigMap", present("kubectl")));
    assert_eq!(record.outcome, Outcome::Corrected);
    assert_eq!(script.calls()[1], "rehearse by force");
    assert!(script.calls()[4].starts_with("apply force=true"), "{:?}", script.calls());
}

#[test]
fn an_object_that_we_wrote_is_ours_though_others_took_every_field() {
    let mut snapshot = snapshot_of("ConfigMap", present("kubectl"));
    snapshot.applied_uid = Some("u1".into());
    let script = Script::drift();
    assert_eq!(script.run(&enforce(), &snapshot).outcome, Outcome::Corrected);
    // Another object of that name is another object.
    snapshot.applied_uid = Some("u0".into());
    let script = Script::drift();
    script.run(&enforce(), &snapshot);
    assert_eq!(script.calls()[1], "rehearse", "without force");
}

#[test]
fn what_the_server_reads_as_equal_is_in_sync() {
    let spelt = Difference { desired: Some(br#""2000m""#.to_vec()), ..difference("/data/a") };
    let script = Script {
        comparison: Ok(Comparison::Different(vec![spelt])),
        rehearsal: Ok(live("2", "trimtab")),
        ..Script::drift()
    };
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
    assert_eq!(record.outcome, Outcome::InSyncByServer);
    assert_eq!(script.calls(), ["compare", "rehearse by force"]);
}

#[test]
fn a_value_that_the_rehearsal_does_not_bring_is_not_in_sync_and_not_written() {
    let script = Script { rehearsal: Ok(live("2", "trimtab")), ..Script::drift() };
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
    assert!(matches!(&record.outcome, Outcome::NotKept(why) if why.contains("/data/a")));
    assert!(!record.outcome.converged());
    assert_eq!(record.findings[0].name, "desired-value-not-kept");
    assert_eq!(record.differences[0].path, "/data/a");
    assert_eq!(script.calls(), ["compare", "rehearse by force", "suspects"]);
}

#[test]
fn the_same_correction_again_and_again_is_a_fight_and_is_left_alone_for_a_while() {
    let mut fights = Fights::default();
    let mut snapshot = snapshot_of("ConfigMap", present("trimtab"));
    let pass = |fights: &mut Fights, snapshot: &mut Snapshot, script: &Script| {
        snapshot.now_ms += 1000;
        snapshot.standoff = fights.standoff(snapshot.now_ms);
        let record = script.run(&enforce(), snapshot);
        fights.ended(&record);
        record.outcome
    };
    for _ in 0..fight::ROUNDS {
        assert_eq!(pass(&mut fights, &mut snapshot, &Script::drift()), Outcome::Corrected);
    }
    let script = Script::drift();
    let outcome = pass(&mut fights, &mut snapshot, &script);
    assert!(matches!(&outcome, Outcome::Contested { reason, .. } if reason.contains("/data/a")));
    assert_eq!(script.calls(), ["compare", "rehearse by force"]);
    // Another difference is corrected meanwhile.
    let other = Script {
        comparison: Ok(Comparison::Different(vec![Difference {
            live: Some(br#""3""#.to_vec()),
            ..difference("/data/a")
        }])),
        ..Script::drift()
    };
    assert_eq!(pass(&mut fights.clone(), &mut snapshot.clone(), &other), Outcome::Corrected);
    // After the pause it is tried once, and the next pause begins at once.
    snapshot.now_ms += u64::try_from(fight::PAUSE.as_millis()).unwrap();
    assert_eq!(pass(&mut fights, &mut snapshot, &Script::drift()), Outcome::Corrected);
    let outcome = pass(&mut fights, &mut snapshot, &Script::drift());
    assert!(matches!(outcome, Outcome::Contested { .. }));
}

#[test]
fn a_plugin_that_corrects_its_own_writes_is_stopped_until_somebody_else_writes() {
    let mut fights = Fights::default();
    let mut snapshot = snapshot_of("ConfigMap", present("trimtab"));
    let mut value = 0;
    // Each time it finds another value, which is its own of the time before.
    let mut pass = |fights: &mut Fights, snapshot: &mut Snapshot| {
        snapshot.now_ms += 1000;
        snapshot.standoff = fights.standoff(snapshot.now_ms);
        value += 1;
        let live = Some(value.to_string().into_bytes());
        let difference = Difference { live, ..difference("/data/a") };
        let comparison = Ok(Comparison::Different(vec![difference]));
        let record = Script { comparison, ..Script::drift() }.run(&enforce(), snapshot);
        fights.ended(&record);
        if let (Some(written), Live::Present(live)) = (record.written(), &mut snapshot.live) {
            live.resource_version = written.resource_version;
        }
        record.outcome
    };
    for _ in 0..=fight::OWN_ROUNDS {
        assert_eq!(pass(&mut fights, &mut snapshot), Outcome::Corrected);
    }
    for _ in 0..3 {
        let outcome = pass(&mut fights, &mut snapshot);
        let itself = |reason: &str| reason.contains("contradicts itself");
        assert!(matches!(&outcome, Outcome::Contested { reason, .. } if itself(reason)));
    }
    let Live::Present(live) = &mut snapshot.live else { panic!("it is there") };
    live.resource_version = "somebody-elses".into();
    assert_eq!(pass(&mut fights, &mut snapshot), Outcome::Corrected);
}

#[test]
fn an_object_is_not_made_anew_again_and_again() {
    let mut fights = Fights::default();
    let mut snapshot = recreatable("ConfigMap", "recreate");
    let outcomes: Vec<&str> = (0..4)
        .map(|_| {
            snapshot.now_ms += 1000;
            snapshot.standoff = fights.standoff(snapshot.now_ms);
            let verdict = Ok(decided(vec![Action::Recreate]));
            let record = Script { verdict, ..Script::drift() }.run(&enforce(), &snapshot);
            fights.ended(&record);
            record.outcome.as_str()
        })
        .collect();
    assert_eq!(outcomes, ["created", "created", "created", "contested"]);
}

#[test]
fn corrections_far_apart_are_no_fight() {
    let mut fights = Fights::default();
    let mut snapshot = snapshot_of("ConfigMap", present("trimtab"));
    for _ in 0..2 * fight::ROUNDS {
        snapshot.now_ms += u64::try_from(fight::WINDOW.as_millis()).unwrap() / 4;
        snapshot.standoff = fights.standoff(snapshot.now_ms);
        let record = Script::drift().run(&enforce(), &snapshot);
        assert_eq!(record.outcome, Outcome::Corrected);
        fights.ended(&record);
    }
}

#[test]
fn a_webhook_that_allows_no_dry_run_leaves_the_verdict_unknown() {
    let why = ApplyError::NoDryRun("webhook w does not support dry run".into());
    let script = Script { rehearsal: Err(why), ..Script::drift() };
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
    assert!(matches!(&record.outcome, Outcome::Unknown(why) if why.contains("webhook w")));
    assert!(!record.outcome.converged());
}

#[test]
fn what_a_client_side_tool_stated_is_ours_to_release_once_the_grant_allows_to_adopt() {
    let mut snapshot = snapshot_of("ConfigMap", Live::Absent);
    let json = live("2", succession::PREDECESSORS[0])
        .replace(r#""operation":"Apply""#, r#""operation":"Update""#)
        .replace(
            r#""uid":"u1""#,
            r#""uid":"u1","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}"#,
        );
    snapshot.live = Live::Present(LiveObject {
        json: json.into_bytes().into(),
        uid: "u1".into(),
        resource_version: "7".into(),
        deleting: false,
    });
    let calls = |power: &Power| {
        let script = Script::drift();
        let record = script.run(power, &snapshot);
        // Attributed to who wrote it, whoever it is taken over by.
        assert_eq!(record.differences[0].managers[0].name, succession::PREDECESSORS[0]);
        script.calls()
    };
    assert!(!calls(&enforce()).iter().any(|call| call.starts_with("patch")));
    let mut adopting = enforce();
    adopting.grant.as_mut().unwrap().actions.insert(ActionKind::Adopt);
    let calls = calls(&adopting);
    assert_eq!(calls[3], "intent adopt");
    for part in [
        r#"{"op":"test","path":"/metadata/resourceVersion","value":"7"}"#,
        r#""path":"/metadata/managedFields","value":[{"manager":"trimtab","operation":"Apply""#,
        r#"{"op":"remove","path":"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"}"#,
    ] {
        assert!(calls[4].starts_with("patch") && calls[4].contains(part), "{part}: {calls:?}");
    }
    assert!(calls[6].starts_with("apply") && calls[6].contains(r#""resourceVersion":"8""#));
}

#[test]
fn managed_fields_of_a_version_that_is_gone_are_carried_over_where_we_may_and_told_otherwise() {
    let gone = || Script {
        rehearsal: Err(ApplyError::ManagedInUnserved {
            message: "invalid group/version: v1".into(),
            api_version: Some("v1".into()),
        }),
        ..Script::drift()
    };
    let mut snapshot = snapshot_of("ConfigMap", present("kubectl"));
    snapshot.gvk.version = "v2".into();
    let script = gone();
    let Outcome::Rejected(why) = script.run(&enforce(), &snapshot).outcome else { panic!() };
    assert!(why.contains("kubectl") && why.contains("adopt"), "{why}");
    assert_eq!(script.calls().len(), 2, "{:?}", script.calls());
    snapshot.applied_uid = Some("u1".into());
    let script = gone();
    let record = script.run(&enforce(), &snapshot);
    assert!(matches!(record.outcome, Outcome::Waiting(_)), "{:?}", record.outcome);
    assert!(script.calls()[3].contains(r#""apiVersion":"v2""#), "{:?}", script.calls());
}

#[test]
fn of_our_own_object_it_is_told_what_would_be_carried_over_where_nothing_is_written() {
    let script = Script {
        rehearsal: Err(ApplyError::ManagedInUnserved {
            message: ".spec.a: field not declared in schema".into(),
            api_version: None,
        }),
        ..Script::drift()
    };
    let mut snapshot = snapshot_of("ConfigMap", present("trimtab"));
    snapshot.gvk.version = "v2".into();
    let record = script.run(&power(None), &snapshot);
    assert_eq!(record.outcome, Outcome::Observed);
    assert_eq!(record.planned[0].paths, [succession::MANAGED_FIELDS_POINTER]);
    assert!(record.findings[0].message.contains("trimtab name v1, in which"));
    assert_eq!(script.calls(), ["compare", "rehearse by force"]);
}

/// A grant that allows to adopt.
fn adopting() -> Power {
    let mut power = enforce();
    power.grant.as_mut().unwrap().actions.insert(ActionKind::Adopt);
    power
}

#[test]
fn what_is_in_sync_and_was_never_ours_is_taken_over_once_where_the_grant_allows_to_adopt() {
    let in_sync = || Script { comparison: Ok(Comparison::InSync), ..Script::drift() };
    let theirs = snapshot_of("ConfigMap", present("kubectl"));
    let script = in_sync();
    let record = script.run(&adopting(), &theirs);
    assert_eq!(record.outcome, Outcome::Corrected);
    let calls = script.calls();
    assert_eq!(calls[..3], ["compare", "rehearse by force", "intent adopt"]);
    assert!(calls[3].starts_with("apply force=true") && calls.len() == 4, "{calls:?}");
    let mut known = theirs.clone();
    known.applied_uid = Some("u1".into());
    let mut nothing = theirs.clone();
    let json = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}"#;
    nothing.desired =
        Arc::new(Desired { json: json.to_vec().into(), ..Desired::clone(&nothing.desired) });
    let observing = Power { grant: power(Some(Mode::Observe)).grant, ..adopting() };
    for (power, snapshot) in [
        (enforce(), theirs.clone()),
        (observing, theirs),
        (adopting(), snapshot_of("ConfigMap", present("trimtab"))),
        (adopting(), known),
        (adopting(), nothing),
        (adopting(), snapshot_of("ConfigMap", Live::Absent)),
    ] {
        let script = in_sync();
        assert_eq!(script.run(&power, &snapshot).outcome, Outcome::InSync);
        assert_eq!(script.calls(), ["compare"]);
    }
}

#[test]
fn what_cannot_be_taken_over_stays_in_sync_and_is_told() {
    let script = Script {
        comparison: Ok(Comparison::InSync),
        rehearsal: Err(ApplyError::Rejected("a policy says no".into())),
        ..Script::drift()
    };
    let record = script.run(&adopting(), &snapshot_of("ConfigMap", present("kubectl")));
    assert_eq!(record.outcome, Outcome::InSync);
    assert!(record.findings[0].message.contains("a policy says no"), "{:?}", record.findings);
    assert_eq!(script.calls(), ["compare", "rehearse by force"]);
}

/// A workload with these replicas, which these managers stated.
fn scaled(managers: &str) -> Live {
    let json = format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"c","namespace":"n","uid":"u1","resourceVersion":"7","managedFields":[{managers}]}},"spec":{{"paused":true,"replicas":6}}}}"#
    );
    Live::Present(LiveObject {
        json: json.into_bytes().into(),
        uid: "u1".into(),
        resource_version: "7".into(),
        deleting: false,
    })
}

#[test]
fn replicas_that_are_stated_no_longer_are_handed_over_before_they_are_let_go_of() {
    let owner = |name: &str, operation: &str| {
        format!(
            r#"{{"manager":"{name}","operation":"{operation}","apiVersion":"apps/v1","fieldsV1":{{"f:spec":{{"f:paused":{{}},"f:replicas":{{}}}}}}}}"#
        )
    };
    let calls = |managers: &str, desired: &str| {
        let mut snapshot = snapshot_of("Deployment", scaled(managers));
        snapshot.gvk = Gvk::from_api_version("apps/v1", "Deployment");
        snapshot.key.group_kind = GroupKind::new("apps", "Deployment");
        let json = format!(
            r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"c"}},"spec":{desired}}}"#
        );
        let desired = Desired { json: json.into_bytes().into(), ..(*snapshot.desired).clone() };
        snapshot.desired = Arc::new(desired);
        let rehearsal = Ok(r#"{"spec":{"paused":false,"replicas":1}}"#.to_owned());
        let differs = difference("/spec/paused");
        let script = Script {
            comparison: Ok(Comparison::Different(vec![differs])),
            rehearsal,
            ..Script::drift()
        };
        script.run(&enforce(), &snapshot);
        script.calls().split_off(3)
    };
    let ours = owner("trimtab", "Apply");
    let handed = calls(&ours, r#"{"paused":false}"#);
    assert_eq!(handed.len(), 4, "{handed:?}");
    let field = r#""fieldsV1":{"f:spec":{"f:paused":{}}}"#;
    assert!(handed[1].starts_with("patch") && handed[1].contains(field), "{handed:?}");
    assert!(handed[3].starts_with("apply") && handed[3].contains(r#""resourceVersion":"8""#));
    let both = format!("{ours},{}", owner("autoscaler", "Update"));
    for (managers, desired) in [
        (ours.as_str(), r#"{"paused":false,"replicas":2}"#),
        (&both, r#"{"paused":false}"#),
        (&owner("kubectl", "Update"), r#"{"paused":false}"#),
    ] {
        let calls = calls(managers, desired);
        assert!(calls.len() == 2 && calls[1].starts_with("apply"), "{calls:?}");
    }
}

/// What a schema says of a Deployment's strategy.
fn strategy_facts() -> Arc<[u8]> {
    let document = r##"{"components":{"schemas":{"io.k8s.api.apps.v1.Deployment":{"type":"object",
        "x-kubernetes-group-version-kind":[{"group":"apps","kind":"Deployment","version":"v1"}],
        "properties":{"spec":{"$ref":"#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"}}},
        "io.k8s.api.apps.v1.DeploymentSpec":{"type":"object","properties":{"strategy":{
            "$ref":"#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}}},
        "io.k8s.api.apps.v1.DeploymentStrategy":{"type":"object","properties":{"type":{"type":"string"},
            "rollingUpdate":{"type":"object","properties":{"maxSurge":{"type":"string"}}}}}}}}"##;
    let document = trimtab_json::parse(document.as_bytes()).unwrap();
    let facts = trimtab_compare::facts::build(&document, "apps", "v1", "Deployment");
    facts.unwrap().into()
}

#[test]
fn what_cannot_stand_beside_desired_is_made_ours_before_the_apply_and_rehearsed_as_a_patch() {
    let owner = r#"{"manager":"trimtab","operation":"Apply","apiVersion":"apps/v1","fieldsV1":{"f:spec":{"f:paused":{}}}}"#;
    let Live::Present(mut live) = scaled(owner) else { panic!() };
    let strategy =
        r#""spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"1"}},"#;
    let json = String::from_utf8_lossy(&live.json).replace(r#""spec":{"#, strategy);
    live.json = json.into_bytes().into();
    let mut snapshot = snapshot_of("Deployment", Live::Present(live));
    snapshot.gvk = Gvk::from_api_version("apps/v1", "Deployment");
    snapshot.key.group_kind = GroupKind::new("apps", "Deployment");
    snapshot.facts = strategy_facts();
    let json = br#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"c"},"spec":{"replicas":6,"strategy":{"type":"Recreate"}}}"#;
    let desired = Desired { json: json.to_vec().into(), ..(*snapshot.desired).clone() };
    snapshot.desired = Arc::new(desired);
    let probe = crate::gate::probe(&enforce(), &snapshot).unwrap();
    assert!(probe.patches());
    let patch = String::from_utf8_lossy(probe.body()).into_owned();
    for part in [
        r#"{"op":"test","path":"/metadata/resourceVersion","value":"7"}"#,
        r#""path":"/spec","op":"add""#,
        r#""strategy":{"type":"Recreate"}"#,
    ] {
        assert!(patch.contains(part), "{part}: {patch}");
    }
    let script = Script {
        comparison: Ok(Comparison::Different(vec![difference("/spec/strategy/type")])),
        rehearsal: Ok(r#"{"spec":{"strategy":{"type":"Recreate"}}}"#.into()),
        ..Script::drift()
    };
    script.run(&enforce(), &snapshot);
    let calls = script.calls().split_off(3);
    assert_eq!(calls[0], "intent adopt");
    let field = r#""f:strategy":{"f:rollingUpdate":{}}"#;
    assert!(calls[1].starts_with("patch") && calls[1].contains(field), "{calls:?}");
    assert!(calls[3].starts_with("apply") && !calls[3].contains("rollingUpdate"), "{calls:?}");
}

#[test]
fn a_drift_that_cannot_be_confirmed_is_unknown_and_not_corrected() {
    let script = Script {
        rehearsal: Err(ApplyError::Forbidden("patch configmaps".into())),
        ..Script::drift()
    };
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
    assert!(matches!(record.outcome, Outcome::Unknown(_)), "{:?}", record.outcome);
}

#[test]
fn a_trap_costs_the_pass_and_nothing_else() {
    let script =
        Script { comparison: Err(PluginFault::Trap("unreachable".into())), ..Script::drift() };
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
    assert_eq!(record.outcome, Outcome::Fault("trapped: unreachable".into()));
}

#[test]
fn stray_fields_are_removed_after_the_apply_from_the_object_that_it_left() {
    let actions = vec![
        // What the apply changed is not what was seen: it stays.
        Action::RemoveFields(vec!["/data/stray".into(), "/data/a".into()]),
        Action::ApplyDesired { without: vec![] },
    ];
    let script = Script { verdict: Ok(decided(actions)), ..Script::drift() };
    script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
    let calls = script.calls();
    assert!(calls[4].starts_with("apply"), "{calls:?}");
    assert_eq!(
        calls[6],
        r#"patch [{"op":"test","path":"/metadata/uid","value":"u1"},{"op":"test","path":"/metadata/resourceVersion","value":"8"},{"op":"remove","path":"/data/stray"}]"#
    );
}

#[test]
fn a_recreation_deletes_exactly_what_was_seen() {
    let script = Script { verdict: Ok(decided(vec![Action::Recreate])), ..Script::drift() };
    let snapshot = recreatable("ConfigMap", "recreate");
    let record = script.run(&enforce(), &snapshot);
    let calls = script.calls();
    assert_eq!(calls[3..6], ["dependents", "intent recreate", "delete u1 7 orphan=false"]);
    let desired = String::from_utf8_lossy(&snapshot.desired.json);
    assert_eq!(calls[7], format!("apply force=false {desired}"));
    assert_eq!(record.planned[0].takes, ["2 Pods"]);
}

#[test]
fn an_object_is_made_anew_only_where_its_own_manifest_allows_it() {
    let run = |snapshot: &Snapshot| {
        let script = Script { verdict: Ok(decided(vec![Action::Recreate])), ..Script::drift() };
        let record = script.run(&enforce(), snapshot);
        assert!(!script.calls().iter().any(|call| call.starts_with("delete")));
        assert_eq!(record.outcome, Outcome::Refused);
        record.refusals[0].to_string()
    };
    let refusal = run(&snapshot_of("ConfigMap", present("trimtab")));
    assert!(refusal.starts_with("RecreateNotAllowed"), "{refusal}");
    assert!(refusal.contains("trimtab.dev/on-immutable: recreate "), "{refusal}");
    assert!(refusal.ends_with("it would take 2 Pods"), "{refusal}");
    // Live may say what it likes; and what holds data asks for a word of its own.
    for kind in ["PersistentVolumeClaim", "PersistentVolume", "Namespace"] {
        let refusal = run(&recreatable(kind, "recreate"));
        assert!(refusal.contains("on-immutable: recreate-stateful"), "{refusal}");
    }
    let script = Script { verdict: Ok(decided(vec![Action::Recreate])), ..Script::drift() };
    script.run(&enforce(), &recreatable("PersistentVolumeClaim", "recreate-stateful"));
    assert_eq!(script.calls()[5], "delete u1 7 orphan=false");
}

#[test]
fn a_change_that_the_server_refuses_for_good_is_the_plugins_to_answer() {
    let refused = || Script {
        rehearsal: Err(ApplyError::Immutable {
            message: "data: field is immutable".into(),
            fields: vec!["data".into()],
        }),
        ..Script::drift()
    };
    let snapshot = snapshot_of("ConfigMap", present("trimtab"));
    // Applying would be refused: it is not tried.
    let record = refused().run(&enforce(), &snapshot);
    let words = "immutable_field: data: field is immutable";
    assert_eq!(record.outcome, Outcome::Rejected(words.into()));
    assert_eq!(record.differences[0].immutable.as_deref(), Some("/data"));
    // Making it anew is an answer, where it is granted.
    let script = Script { verdict: Ok(decided(vec![Action::Recreate])), ..refused() };
    let record = script.run(&enforce(), &recreatable("ConfigMap", "recreate"));
    assert_eq!(record.outcome, Outcome::Created);
    assert_eq!(script.calls()[5], "delete u1 7 orphan=false");
}

#[test]
fn a_path_left_out_is_not_applied_and_must_exist() {
    let without = |path: &str| Script {
        verdict: Ok(decided(vec![Action::ApplyDesired { without: vec![path.into()] }])),
        ..Script::drift()
    };
    let snapshot = snapshot_of("ConfigMap", present("trimtab"));
    let script = without("/data/a");
    script.run(&enforce(), &snapshot);
    assert!(script.calls()[4].contains(r#""data":{}"#), "{:?}", script.calls());
    let record = without("/data/none").run(&enforce(), &snapshot);
    assert!(matches!(record.outcome, Outcome::Fault(_)), "{:?}", record.outcome);
}

/// `/data/a` of the snapshot is ignored.
fn ignoring(mut snapshot: Snapshot, rule: &str) -> Snapshot {
    let mut desired = Desired::clone(&snapshot.desired);
    let rule = Rule::parse(rule, "here").unwrap();
    desired.ignore.extend(&[Scoped::everywhere(rule)], &snapshot.key);
    snapshot.desired = Arc::new(desired);
    snapshot
}

#[test]
fn an_ignored_field_is_never_written_but_when_the_object_is_made() {
    let run = |action: Action, manager: &str| {
        let script = Script { verdict: Ok(decided(vec![action])), ..Script::drift() };
        let snapshot = ignoring(snapshot_of("ConfigMap", present(manager)), "/data/a");
        let record = script.run(&enforce(), &snapshot);
        let calls = script.calls();
        let write = calls.get(4).cloned().unwrap_or_default();
        (write, record)
    };
    let desired = || Action::ApplyDesired { without: vec!["/data/a".into()] };
    let content = || Action::ApplyContent(br#"{"data":{"a":"9","b":"9"}}"#.to_vec());
    // Ours: it is sent as live has it, or the server would take it away.
    let (write, record) = run(desired(), "trimtab");
    assert!(write.ends_with(r#""data":{"a":"2"}}"#), "{write}");
    assert_eq!(record.ignored[0].places, 1);
    let (write, _) = run(content(), "trimtab");
    assert!(write.contains(r#""data":{"b":"9","a":"2"}"#), "{write}");
    // Somebody else's: it is left out.
    let (write, _) = run(desired(), "kubectl");
    assert!(write.starts_with("apply") && !write.contains(r#""a":"#), "{write}");
    let (write, _) = run(content(), "kubectl");
    assert!(write.contains(r#""data":{"b":"9"}"#), "{write}");
    // What lies around it can be removed, itself cannot.
    let (write, _) = run(Action::RemoveFields(vec!["/data".into()]), "trimtab");
    assert!(write.ends_with(r#"{"op":"remove","path":"/data/stray"}]"#), "{write}");
    let (write, record) = run(Action::RemoveFields(vec!["/data/a".into()]), "trimtab");
    assert_eq!(
        (write.as_str(), record.outcome, record.refusals[0].reason),
        ("", Outcome::Refused, "FieldIgnored")
    );
    // Absent: it is made as it is declared.
    let script = Script::drift();
    script.run(&enforce(), &ignoring(snapshot_of("ConfigMap", Live::Absent), "/data/a"));
    assert_eq!(script.calls()[3], format!("apply force=false {DESIRED}"));
}

#[test]
fn an_annotation_that_cannot_be_read_refuses_its_object_alone_and_names_it() {
    let mut snapshot = snapshot_of("Secret", present("trimtab"));
    let json = DESIRED.replace("ConfigMap", "Secret").replace(
        r#""namespace":"n""#,
        r#""namespace":"n","annotations":{"trimtab.dev/ignore":"data"}"#,
    );
    let manifest = crate::object::Manifest {
        gvk: snapshot.gvk.clone(),
        namespace: Some("n".into()),
        name: "c".into(),
        json: json.into_bytes().into(),
        origin: Origin { file: "a.yaml".into(), line: 1 },
    };
    let revision = crate::object::Revision {
        source: "s".into(),
        id: "r".into(),
        manifests: vec![manifest.clone()],
        provenance: Default::default(),
    };
    let scope = crate::placing::Scope::Namespaced;
    let desired = crate::placing::place(&revision, &manifest, scope, "n").unwrap();
    snapshot.desired = Arc::new(desired);
    let script = Script::drift();
    let record = script.run(&enforce(), &snapshot);
    let Outcome::Rejected(message) = record.outcome else { panic!("{:?}", record.outcome) };
    assert!(message.contains("annotation trimtab.dev/ignore of Secret n/c"), "{message}");
    assert!(script.calls().is_empty());
}

#[test]
fn a_deferral_is_bounded() {
    let script = Script {
        verdict: Ok(Verdict::Defer { reason: "later".into(), after_ms: 0 }),
        ..Script::drift()
    };
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
    assert_eq!(
        record.outcome,
        Outcome::Deferred { reason: "later".into(), after: Duration::from_secs(1) }
    );
}

#[test]
fn no_value_of_a_secret_is_in_its_record() {
    let verdict = Verdict::Decided(Decision {
        actions: vec![Action::Leave("the value is 2 hunter2".into())],
        findings: vec![Finding {
            name: "f".into(),
            severity: Severity::Info,
            message: "hunter2".into(),
            path: None,
        }],
        ..Decision::default()
    });
    let mut seen = difference("/data/a");
    seen.live = Some(br#""hunter2""#.to_vec());
    let script = Script {
        comparison: Ok(Comparison::Different(vec![seen])),
        verdict: Ok(verdict),
        ..Script::drift()
    };
    let record = script.run(&enforce(), &snapshot_of("Secret", present("trimtab")));
    let shown = format!("{record:?}");
    let hidden =
        String::from_utf8_lossy(record.differences[0].live.as_deref().unwrap()).into_owned();
    assert!(hidden.starts_with("\"fingerprint:"), "{hidden}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_plugin_without_a_grant_sees_no_value_of_a_secret() {
    /// Tells what it was shown.
    struct Curious(Mutex<String>, Script);

    impl Judge for Curious {
        async fn compare(&self, shown: &Snapshot) -> Result<Comparison, PluginFault> {
            let live = shown.live_object().map(|live| live.json.to_vec()).unwrap_or_default();
            let seen = [&*shown.desired.json, &live].concat();
            *self.0.lock().unwrap() = String::from_utf8(seen).unwrap();
            self.1.compare(shown).await
        }

        async fn decide(&self, _: &Snapshot, _: &[Difference]) -> Result<Verdict, PluginFault> {
            self.1.verdict.clone()
        }
    }

    let shown = |power: &Power, kind: &str| {
        let curious = Curious(Mutex::default(), Script::drift());
        let world = World {
            judge: &curious,
            cluster: &curious.1,
            journal: &curious.1,
            clock: &curious.1,
            redactor: &Redactor::new([0; 32]),
            bounds: &Bounds::default(),
        };
        let snapshot = snapshot_of(kind, present("trimtab"));
        let record = futures::executor::block_on(world.pass(power, &snapshot, Trigger::Watch));
        (curious.0.into_inner().unwrap(), record)
    };
    let value = r#""stray":"x > 1""#;
    for (power, kind, sees) in [
        (power(None), "Secret", false),
        (power(None), "ConfigMap", true),
        (enforce(), "Secret", true),
    ] {
        let (seen, record) = shown(&power, kind);
        assert_eq!(seen.contains(value), sees, "{kind}: {seen}");
        assert!(!record.differences.is_empty(), "{record:?}");
    }
}

#[test]
fn what_a_plugin_says_of_a_secret_is_where_and_what_the_objects_have_there() {
    let mut carrying = difference("/metadata/name");
    carrying.desired = Some(br#""2retnuh""#.to_vec());
    carrying.immutable = Some("/2retnuh".into());
    let script = Script {
        comparison: Ok(Comparison::Different(vec![difference("/data/2retnuh"), carrying])),
        rehearsal: Err(ApplyError::Forbidden("no".into())),
        ..Script::drift()
    };
    let record = script.run(&enforce(), &snapshot_of("Secret", present("trimtab")));
    let [seen] = &record.differences[..] else { panic!("{:?}", record.differences) };
    assert_eq!(seen.path, "/metadata/name");
    assert_eq!(seen.desired.as_deref(), Some(br#""c""#.as_slice()));
    assert_eq!(seen.immutable, None);
    let shown = format!("{record:?}");
    assert!(!shown.contains("2retnuh"), "{shown}");
}

#[test]
fn the_words_of_a_plugin_that_read_a_secret_are_withheld() {
    let words = "the password is hunter2hunter2";
    let secret: Arc<[u8]> = br#"{"data":{"pw":"aHVudGVyMmh1bnRlcjI="}}"#.as_slice().into();
    let finding = Finding {
        name: "hunter2hunter2".into(),
        severity: Severity::Info,
        message: words.into(),
        path: Some("/hunter2hunter2".into()),
    };
    let condition = Condition {
        type_: "Ready".into(),
        status: ConditionStatus::False,
        reason: "Because".into(),
        message: words.into(),
    };
    let decision = Decision {
        actions: vec![Action::Leave(words.into())],
        conditions: vec![condition],
        findings: vec![finding],
        ..Decision::default()
    };
    let mut carrying = difference("/data/a");
    carrying.live = Some(format!("{words:?}").into_bytes());
    let different = Comparison::Different(vec![carrying, difference("/hunter2hunter2")]);
    let after_ms = 5000;
    for verdict in [
        Verdict::Decided(decision),
        Verdict::Unknown(words.into()),
        Verdict::Defer { reason: words.into(), after_ms },
    ] {
        let run = |secrets: Vec<Arc<[u8]>>| {
            let comparison = Ok(different.clone());
            let script =
                Script { comparison, verdict: Ok(verdict.clone()), secrets, ..Script::drift() };
            script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")))
        };
        assert!(format!("{:?}", run(vec![])).contains("hunter2"), "the test says something");
        let record = run(vec![secret.clone()]);
        let shown: Vec<String> = record
            .differences
            .iter()
            .filter_map(|it| it.live.as_ref())
            .map(|it| String::from_utf8_lossy(it).into_owned())
            .collect();
        assert!(!shown.iter().any(|it| it.contains("hunter2")), "{shown:?}");
        assert!(!format!("{record:?}").contains("hunter2"), "{record:?}");
    }
    for comparison in [Comparison::Invalid(words.into()), Comparison::Unknown(words.into())] {
        let script =
            Script { comparison: Ok(comparison), secrets: vec![secret.clone()], ..Script::drift() };
        let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
        assert!(!format!("{record:?}").contains("hunter2"), "{record:?}");
    }
}

#[test]
fn an_object_over_its_plugins_budget_waits_and_nothing_is_written() {
    let mut script = Script::drift();
    let left = Left { writes: Arc::new(1.into()), deletes: Arc::default() };
    script.bounds.allowance = Allowance::of(left.clone());
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
    let taken = Amount { writes: 1, deletes: 0 };
    assert_eq!((record.outcome, script.bounds.allowance.taken()), (Outcome::Corrected, taken));
    let mut script = Script::drift();
    script.bounds.allowance = Allowance::of(left);
    let record = script.run(&enforce(), &snapshot_of("ConfigMap", present("trimtab")));
    assert!(matches!(record.outcome, Outcome::OverBudget { .. }), "{:?}", record.outcome);
    assert!(
        !script.calls().iter().any(|call| call.starts_with("apply") || call.starts_with("intent"))
    );
}

/// The snapshot, with its desired object under these terms.
fn under(terms: SourceTerms, mut snapshot: Snapshot) -> Snapshot {
    let desired = Desired { terms: Arc::new(terms), ..(*snapshot.desired).clone() };
    snapshot.desired = Arc::new(desired);
    snapshot
}

#[test]
fn a_source_that_observes_writes_nothing_whatever_the_grant_says() {
    let script = Script::drift();
    let terms = SourceTerms { mode: Mode::Observe, ..SourceTerms::default() };
    let record =
        script.run(&enforce(), &under(terms, snapshot_of("ConfigMap", present("trimtab"))));
    assert_eq!((record.outcome, record.mode), (Outcome::Observed, Mode::Observe));
    assert_eq!(script.calls(), ["compare", "rehearse by force", "decide 1"]);
}

#[test]
fn the_gate_holds_a_confined_source_to_its_namespace_however_its_objects_came_there() {
    let script = Script::drift();
    let terms = SourceTerms { confined_to: Some("shop".into()), ..SourceTerms::default() };
    let record =
        script.run(&enforce(), &under(terms, snapshot_of("ConfigMap", present("trimtab"))));
    assert_eq!(record.outcome, Outcome::Refused);
    assert_eq!(record.refusals[0].reason, "OutsideTargetNamespace");
    assert!(!script.calls().iter().any(|call| call.starts_with("apply")), "{:?}", script.calls());
}

#[test]
fn what_a_pass_asks_and_writes_is_asked_and_written_as_its_sources_account() {
    let account = Arc::new(Account::parse("n/deployer").unwrap());
    let terms = SourceTerms { acts_as: Some(account.clone()), ..SourceTerms::default() };
    let snapshot = under(terms, snapshot_of("ConfigMap", present("trimtab")));
    let probe = crate::gate::probe(&enforce(), &snapshot).unwrap();
    assert_eq!(probe.target().acts_as.as_ref(), Some(&account));
    let decision =
        Decision { actions: vec![Action::ApplyDesired { without: vec![] }], ..Decision::default() };
    let gated = crate::gate::gate(&enforce(), &snapshot, &decision, &Default::default()).unwrap();
    let changes = gated.permits[0].drafts(&snapshot, &snapshot).unwrap();
    assert_eq!(changes[0].target().acts_as.as_ref(), Some(&account));
}

/// The object with this annotation, desired or live.
fn annotated(json: &str, value: &str) -> Arc<[u8]> {
    let with = format!(r#""annotations":{{"trimtab.dev/reconcile":"{value}"}},"name""#);
    json.replacen(r#""name""#, &with, 1).into_bytes().into()
}

#[test]
fn a_suspended_object_is_not_looked_at_and_says_why() {
    let drifted = live("2", "kubectl-edit");
    for (desired, live, suspended) in [
        (None, Some("suspended"), Some("on the live object")),
        (Some("suspended"), None, Some("in a.yaml:1")),
        (Some("enabled"), Some("suspended"), None),
        (Some("off"), None, Some("taken as suspended")),
        (None, Some("enabled"), None),
    ] {
        let script = Script::drift();
        let mut snapshot = snapshot_of("ConfigMap", present("trimtab"));
        if let Some(value) = live {
            let live = LiveObject::read(annotated(&drifted, value)).unwrap();
            snapshot.live = Live::Present(live);
        }
        if let Some(value) = desired {
            let json = annotated(DESIRED, value);
            let desired = Desired { json, ..(*snapshot.desired).clone() };
            snapshot.desired = Arc::new(desired);
        }
        let record = script.run(&enforce(), &snapshot);
        match (suspended, &record.outcome) {
            (Some(words), Outcome::Suspended(why)) => {
                assert!(why.contains(words), "{why}");
                assert!(script.calls().is_empty(), "{:?}", script.calls());
            }
            (None, outcome) => assert_ne!(outcome.as_str(), "suspended"),
            (Some(_), outcome) => panic!("{desired:?} {live:?}: {outcome:?}"),
        }
    }
}

#[test]
fn what_is_suspended_is_shown_to_whoever_asks() {
    let mut script = Script::drift();
    script.bounds.suspended = Some("its source is".into());
    let snapshot = snapshot_of("ConfigMap", present("trimtab"));
    assert_eq!(script.run(&enforce(), &snapshot).outcome.as_str(), "suspended");
    script.bounds.despite_suspension = true;
    assert_eq!(script.run(&enforce(), &snapshot).outcome.as_str(), "corrected");
}

#[test]
fn what_changed_while_suspended_is_told_before_it_is_corrected() {
    let run = |since: &str, live: Live| {
        let mut script = Script::drift();
        script.bounds.resumed_from = Some(since.into());
        let record = script.run(&enforce(), &snapshot_of("ConfigMap", live));
        let wrote = script.calls().iter().any(|call| call.starts_with("apply"));
        (record, wrote)
    };
    let (record, wrote) = run("2026-01-02T03:00:00Z", present("kubectl-edit"));
    assert!(!wrote && matches!(record.outcome, Outcome::Deferred { .. }), "{:?}", record.outcome);
    let finding = &record.findings[0];
    assert_eq!(finding.name, "changed-while-suspended");
    assert!(
        finding.message.contains("/data/a by kubectl-edit at 2026-01-02T03:04:05Z"),
        "{}",
        finding.message
    );
    let (record, _) = run("2026-01-02T04:00:00Z", present("kubectl-edit"));
    assert!(record.findings.is_empty(), "it was so before: {:?}", record.findings);
    let (record, _) = run("2026-01-02T03:00:00Z", present("trimtab"));
    assert!(record.findings.is_empty(), "that was ourselves: {:?}", record.findings);
}
