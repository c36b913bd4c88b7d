//! What a configuration file says, and what is said of one that is wrong.

use super::*;
use std::path::Path;
use trimtab_core::grant::Mode;
use trimtab_core::identity::{GroupKind, ObjectKey};
use trimtab_source::git::{Credentials, Reference};

const FILE: &str = "apiVersion: trimtab.dev/v1alpha1
kind: Config
sources:
  - name: shop
    path: manifests
    namespace: shop
    ignore:
      - paths: [/spec/replicas]
        kinds: [Deployment.apps]
      - managers: [vpa-updater]
      - paths:
          - /data/a
          - /data/b
        managers: [sync]
        names: [settings]
";

const GIT: &str = "apiVersion: trimtab.dev/v1alpha1
kind: Config
sources:
  - name: base
    path: base
  - name: tenant
    git:
      url: https://git.example.com/tenant.git
      branch: main
      path: clusters/prod
      credentials: {tokenFile: tenant.token}
      verify:
        mode: every
        allowedSigners: allowed_signers
        since: 0123456789012345678901234567890123456789
        signers: [{principal: ada@example.com, paths: ['apps/**']}]
      timeout: 30s
    interval: 5m
    mode: observe
    targetNamespace: tenant
    serviceAccount: tenant/deployer
    prune: true
    deletion: {percentAtMost: 10}
    dependsOn: [base]
";

fn parse(text: &str) -> Result<Config, String> {
    file::parse(text, Path::new("conf/c.yaml"))
}

#[test]
fn a_file_gives_its_source_and_its_rules_with_their_lines() {
    let config = parse(FILE).unwrap();
    let shop = config.get("shop").unwrap();
    assert_eq!(shop.place, Place::Directory("conf/manifests".into()), "beside the file");
    assert_eq!((&*shop.namespace, shop.suspend), ("shop", false));
    assert_eq!((shop.interval, shop.terms.mode), (Duration::from_secs(30), Mode::Enforce));
    let rules: Vec<String> = shop.ignore.iter().map(|scoped| scoped.rule.to_string()).collect();
    assert_eq!(
        rules,
        [
            "/spec/replicas (conf/c.yaml:8)",
            "by vpa-updater (conf/c.yaml:10)",
            "/data/a by sync (conf/c.yaml:12)",
            "/data/b by sync (conf/c.yaml:13)",
        ]
    );
    let covered = |kind: &str| {
        let key = ObjectKey::new(GroupKind::new("apps", kind), "shop", "web");
        shop.ignore.iter().filter(|scoped| scoped.covers(&key)).count()
    };
    assert_eq!((covered("Deployment"), covered("StatefulSet")), (2, 1));
}

#[test]
fn every_key_of_a_source_is_read() {
    let config = parse(GIT).unwrap();
    let tenant = config.get("tenant").unwrap();
    let Place::Git(git) = &tenant.place else { panic!("{:?}", tenant.place) };
    assert_eq!(git.reference, Reference::Branch("main".into()));
    assert_eq!(git.credentials, Credentials::TokenFile("conf/tenant.token".into()));
    assert_eq!(git.timeout, Duration::from_secs(30));
    let verify = git.verify.as_ref().unwrap();
    assert!(verify.since.is_some());
    assert_eq!(verify.limits[0].principal, "ada@example.com");
    assert_eq!(tenant.location(), "https://git.example.com/tenant.git#main:clusters/prod");
    assert_eq!(tenant.interval, Duration::from_secs(300));
    let terms = &tenant.terms;
    assert_eq!((terms.mode, terms.prune), (Mode::Observe, true));
    assert_eq!((terms.confined_to.as_deref(), &*tenant.namespace), (Some("tenant"), "tenant"));
    assert_eq!(terms.acts_as.as_ref().unwrap().user(), "system:serviceaccount:tenant:deployer");
    let limits = tenant.terms.deletion.limits;
    assert_eq!((limits.percent, limits.number), (10, 50));
    assert_eq!(tenant.depends_on, ["base"]);
    assert_eq!(config.get("base").unwrap().terms.confined_to, None);
}

#[test]
fn every_mistake_names_the_file_and_what_is_wrong() {
    let cases = [
        (FILE, "kind: Config", "kind: Grant", "which this host reads"),
        (FILE, "    path: manifests\n", "", "c.yaml:4: source \"shop\" has either a path or git"),
        (FILE, "/spec/replicas", "spec/replicas", "c.yaml:8"),
        (FILE, "[/spec/replicas]", "['/a by b']", "a key of their own"),
        (FILE, "managers: [vpa-updater]", "names: [x]", "c.yaml:10"),
        (FILE, "Deployment.apps", "deployment", "is not a kind"),
        (FILE, "name: shop", "name: Shop", "c.yaml:4"),
        (GIT, "name: tenant", "name: base", "two sources are named \"base\""),
        (GIT, "path: base", "path: base\n    git: {url: https://h/r}", "either a path or git"),
        (GIT, "interval: 5m", "interval: 5 minutes", "c.yaml:18: interval"),
        (GIT, "interval: 5m", "interval: 0s", "between 1s and 24h"),
        (GIT, "targetNamespace: tenant", "targetNamespace: Tenant", "c.yaml:20"),
        (GIT, "prune: true", "namespace: other", "cannot both be"),
        (GIT, "tenant/deployer", "deployer", "c.yaml:21: serviceAccount"),
        (GIT, "tenant/deployer", "'tenant/'", "c.yaml:21: serviceAccount"),
        (GIT, "0123456789012345678901234567890123456789", "0123456", "c.yaml:15"),
        (GIT, "['apps/**']", "[]", "a principal and paths"),
        (GIT, "[base]", "[bases]", "no such source"),
        (GIT, "[base]", "[tenant]", "wait for each other: tenant → tenant"),
        (GIT, "percentAtMost: 10", "percentAtMost: 101", "between 0 and 100"),
        (GIT, "branch: main", "branch: main\n      tag: v1", "one of branch, tag and commit"),
        (GIT, "branch: main", "commit: main", "40 hex digits"),
        (GIT, "path: clusters/prod", "path: ../prod", "c.yaml:10"),
        (GIT, "tokenFile: tenant.token", "sshKey: key", "knownHosts"),
        (GIT, "mode: every", "mode: head", "since has a meaning"),
        (GIT, "allowedSigners: allowed_signers", "tags: true", "nobody may sign"),
        (GIT, "tenant.git", "tenant.git#main", "keys of their own"),
        (GIT, "https://", "https://me:word@", "c.yaml:8"),
    ];
    for (file, good, bad, expected) in cases {
        let text = file.replacen(good, bad, 1);
        assert_ne!(text, file, "{good}");
        let error = parse(&text).unwrap_err();
        assert!(error.contains("c.yaml") && error.contains(expected), "{bad}: {error}");
        assert!(!error.contains("word@"), "{error}");
    }
}

#[test]
fn an_unknown_key_is_refused_with_its_line() {
    for (file, good, bad, line) in [
        (FILE, "names:", "name:", "c.yaml:15: "),
        (GIT, "mode: observe", "modus: observe", "c.yaml:19: "),
        (GIT, "      timeout:", "      timeOut:", "c.yaml:17: "),
        (GIT, "mode: observe", "mode: watch", "c.yaml:19: "),
    ] {
        let error = parse(&file.replace(good, bad)).unwrap_err();
        assert!(error.contains(line), "{bad}: {error}");
    }
}

#[test]
fn what_did_not_change_in_a_file_is_the_same_value_after_it_is_read_again() {
    let old = parse(GIT).unwrap();
    let new = parse(&GIT.replace("interval: 5m", "interval: 6m")).unwrap().after(&old);
    let same = |name: &str| Arc::ptr_eq(old.get(name).unwrap(), new.get(name).unwrap());
    assert!(same("base") && !same("tenant"));
}

#[test]
fn values_to_be_hidden_are_read_and_what_is_wrong_with_them_has_its_line() {
    let with = |redact: &str| parse(&format!("{FILE}redact:\n  - {redact}\n"));
    let config = with("{kinds: [Database.example.com], paths: [/spec/password]}").unwrap();
    let [entry] = config.redact.as_slice() else { panic!("{:?}", config.redact) };
    assert!(entry.kinds[0].covers(&GroupKind::new("example.com", "Database")));
    assert_eq!(entry.paths[0].text(), "/spec/password");
    for (redact, why) in [
        ("{paths: []}", "names one path at least"),
        ("{paths: [spec]}", "write a path such as"),
        ("{kinds: ['a b'], paths: [/spec]}", "kinds:"),
        ("{paths: [/spec], namespaces: [a]}", "namespaces"),
    ] {
        let error = with(redact).unwrap_err();
        assert!(error.contains(why) && error.contains("c.yaml:17"), "{redact}: {error}");
    }
}
