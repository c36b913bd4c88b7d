//! Which rules come of which grants.

use super::*;

fn kind(text: &str) -> GroupKind {
    match KindPattern::parse(text).unwrap() {
        KindPattern::Exact(kind) => kind,
        other => panic!("{other} is no kind"),
    }
}

fn power(claims: &[&str], grant: Option<(&[&str], Namespaces, bool, &[ActionKind])>) -> Power {
    let patterns =
        |texts: &[&str]| texts.iter().map(|it| KindPattern::parse(it).unwrap()).collect();
    let manifest = PluginManifest {
        name: "x".into(),
        version: "0.1.0".into(),
        description: String::new(),
        wit: "0.1.0".into(),
        claims: patterns(claims),
        reads: vec![],
        actions: ActionKind::ALL.into(),
    };
    let digest = Digest::of(b"x");
    Power {
        plugin: PluginIdentity { name: "x".into(), version: "0.1.0".into(), digest },
        grant: grant.map(|(kinds, namespaces, cluster_scoped, actions)| Grant {
            plugin: "x".into(),
            digest,
            mode: Mode::Enforce,
            kinds: patterns(kinds),
            namespaces,
            cluster_scoped,
            actions: actions.iter().copied().collect(),
            predecessors: BTreeSet::new(),
            terms: Default::default(),
            origin: String::new(),
        }),
        manifest,
    }
}

fn table(kind: &GroupKind) -> Option<Resource> {
    crate::schemas::Schemas::default().resource(kind)
}

fn shown(rules: &[Rule]) -> Vec<String> {
    let own = |rule: &&Rule| rule.api_groups != [ADMISSION];
    rules.iter().filter(own).map(ToString::to_string).collect()
}

#[test]
fn an_apply_needs_create_and_patch_and_a_deletion_needs_delete() {
    let needs = |actions: &[ActionKind]| {
        let power = power(&["*"], Some((&["ConfigMap"], Namespaces::All, true, actions)));
        shown(&Needs::of(&[power], None, &table).cluster())
    };
    assert_eq!(
        needs(&[ActionKind::ApplyDesired]),
        ["core: configmaps [get list watch create patch]"]
    );
    assert_eq!(needs(&[ActionKind::RemoveFields]), ["core: configmaps [get list watch patch]"]);
    assert_eq!(
        needs(&[ActionKind::Delete, ActionKind::PatchStatus]),
        [
            "core: configmaps [get list watch patch delete]",
            "core: pods [list]",
            "core: configmaps/status [patch]",
        ]
    );
}

#[test]
fn what_the_grant_lets_a_plugin_read_is_read_whatever_it_lets_it_write() {
    let read = |reads: &[&str], granted: Option<&[&str]>| {
        let patterns = |texts: &[&str]| -> Vec<KindPattern> {
            texts.iter().map(|it| KindPattern::parse(it).unwrap()).collect()
        };
        let mut power =
            power(&["Deployment.apps"], Some((&["Deployment.apps"], Namespaces::All, false, &[])));
        power.manifest.reads = patterns(reads);
        match (granted, &mut power.grant) {
            (Some(granted), Some(grant)) => grant.terms.reads = Some(patterns(granted)),
            _ => power.grant = None,
        }
        shown(&Needs::of(&[power], None, &table).cluster()).join("; ")
    };
    let asked = ["HorizontalPodAutoscaler.autoscaling", "Secret"];
    let rules = read(&asked, Some(&["HorizontalPodAutoscaler.autoscaling"]));
    assert!(rules.contains("autoscaling: horizontalpodautoscalers [get list watch]"), "{rules}");
    assert!(!rules.contains("secrets"), "{rules}");
    let without = read(&["Secret", "Deployment.apps", "Service"], None);
    assert_eq!(without, "apps: deployments [get list watch patch]");
}

#[test]
fn a_grant_that_names_namespaces_writes_in_those_alone_and_reads_everywhere() {
    let only = Namespaces::Only(["shop".to_owned()].into());
    let kinds: &[&str] = &["Deployment.apps", "Namespace"];
    let power = power(&["*"], Some((kinds, only, false, &[ActionKind::ApplyDesired])));
    let needs = Needs::of(&[power], None, &table);
    assert_eq!(
        shown(&needs.cluster()),
        ["core: namespaces [get list watch patch]", "apps: deployments [get list watch]"]
    );
    let namespaces = needs.namespaces();
    assert_eq!(namespaces.len(), 1);
    assert_eq!(shown(&namespaces["shop"]), ["apps: deployments [create patch]"]);
}

#[test]
fn wildcards_are_narrowed_to_what_is_declared_and_else_warned_of() {
    let all: &[&str] = &["*"];
    let power = power(&["*"], Some((all, Namespaces::All, true, &[ActionKind::ApplyDesired])));
    let declared = [kind("Service"), kind("Deployment.apps")].into();
    let powers = [power];
    let needs = Needs::of(&powers, Some(&declared), &table);
    assert!(needs.warnings.is_empty());
    assert_eq!(
        shown(&needs.cluster()),
        [
            "core: services [get list watch create patch]",
            "apps: deployments [get list watch create patch]"
        ]
    );
    let needs = Needs::of(&powers, None, &table);
    assert_eq!(needs.warnings.len(), 1);
    assert_eq!(shown(&needs.cluster()), ["*: * [get list watch create patch]"]);
}

#[test]
fn without_a_grant_what_is_claimed_is_read_and_rehearsed() {
    let needs = Needs::of(&[power(&["Service"], None)], None, &table);
    assert_eq!(shown(&needs.cluster()), ["core: services [get list watch patch]"]);
}

#[test]
fn a_kind_that_nobody_knows_is_named() {
    let powers = [power(&["Widget.example.com"], None)];
    let needs = Needs::of(&powers, None, &table);
    assert_eq!(needs.unknown, [kind("Widget.example.com")].into());
}

#[test]
fn a_source_that_acts_as_an_account_needs_to_impersonate_it_and_its_groups() {
    let account = Account::parse("shop/deployer").unwrap();
    let grant: (&[&str], _, _, &[ActionKind]) =
        (&["ConfigMap"], Namespaces::All, true, &[ActionKind::ApplyDesired]);
    let mut needs = Needs::of(&[power(&["*"], Some(grant))], None, &table);
    needs.act_as([&account].into_iter(), false);
    let groups = "core: groups {system:authenticated, system:serviceaccounts, system:serviceaccounts:shop} [impersonate]";
    assert_eq!(shown(&needs.cluster()), ["core: configmaps [get list watch create patch]", groups]);
    let own = "core: serviceaccounts {deployer} [impersonate]";
    assert_eq!(shown(&needs.namespaces()["shop"]), [own]);
    needs.act_as([&account].into_iter(), true);
    assert_eq!(shown(&needs.cluster()), ["core: configmaps [get list watch]", groups]);
}
