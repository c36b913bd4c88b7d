//! Each denial by itself: what it holds, and what it lets pass.

use super::*;

fn key(group: &str, kind: &str) -> ObjectKey {
    ObjectKey::new(GroupKind::new(group, kind), "n", "c")
}

fn judged(group: &str, kind: &str, before: Option<&str>, after: Option<&str>) -> Vec<Denial> {
    let read = |text: &'static str| trimtab_json::parse(text.as_bytes()).unwrap();
    let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let before = before.map(leak).map(read);
    let after = after.map(leak).map(read);
    judge(&key(group, kind), before.as_ref(), after.as_ref(), &Accounts::new())
        .into_iter()
        .map(|denied| denied.denial)
        .collect()
}

#[test]
fn kinds_that_hand_out_power_are_denied_whatever_is_done_to_them() {
    for (group, kind, denial) in [
        ("rbac.authorization.k8s.io", "RoleBinding", Denial::Rbac),
        ("rbac.authorization.k8s.io", "ClusterRole", Denial::Rbac),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", Denial::Admission),
        ("apiextensions.k8s.io", "CustomResourceDefinition", Denial::Definitions),
        ("apiregistration.k8s.io", "APIService", Denial::ApiServices),
        ("certificates.k8s.io", "CertificateSigningRequest", Denial::Certificates),
        ("", "PersistentVolume", Denial::PersistentVolumes),
    ] {
        for (before, after) in [(None, Some("{}")), (Some("{}"), Some("{}")), (Some("{}"), None)] {
            assert_eq!(judged(group, kind, before, after), [denial], "{kind}");
        }
    }
    for (group, kind) in [("", "ConfigMap"), ("ex.io", "Role"), ("apps", "Deployment")] {
        assert_eq!(judged(group, kind, None, Some("{}")), [], "{kind}");
    }
}

/// The same pod in every kind that has one.
fn in_every_place(pod: &str) -> Vec<(&'static str, &'static str, String)> {
    let wrap = |place: &[&str]| {
        place.iter().rev().fold(pod.to_owned(), |inner, name| format!(r#"{{"{name}":{inner}}}"#))
    };
    pods::KINDS.iter().map(|(group, kind, place)| (*group, *kind, wrap(place))).collect()
}

#[test]
fn a_pod_beyond_the_baseline_is_denied_in_every_kind_and_list_that_can_hold_it() {
    let asks = [
        r#""hostNetwork":true"#,
        r#""hostPID":true"#,
        r#""hostIPC":true"#,
        r#""volumes":[{"name":"v","hostPath":{"path":"/"}}]"#,
        r#""securityContext":{"sysctls":[{"name":"kernel.msgmax","value":"1"}]}"#,
        r#""securityContext":{"seccompProfile":{"type":"Unconfined"}}"#,
        r#""securityContext":{"windowsOptions":{"hostProcess":true}}"#,
        r#""securityContext":{"seLinuxOptions":{"type":"spc_t"}}"#,
    ];
    let of_containers = [
        r#""securityContext":{"privileged":true}"#,
        r#""securityContext":{"privileged":"true"}"#,
        r#""securityContext":{"procMount":"Unmasked"}"#,
        r#""securityContext":{"capabilities":{"add":["NET_BIND_SERVICE","SYS_ADMIN"]}}"#,
        r#""securityContext":{"seccompProfile":{"type":"Unconfined"}}"#,
        r#""securityContext":{"appArmorProfile":{"type":"Unconfined"}}"#,
        r#""securityContext":{"seLinuxOptions":{"user":"root"}}"#,
        r#""ports":[{"containerPort":1,"hostPort":80}]"#,
        r#""livenessProbe":{"httpGet":{"host":"169.254.169.254","port":80}}"#,
        r#""lifecycle":{"preStop":{"tcpSocket":{"host":"a","port":80}}}"#,
    ];
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let mut specs: Vec<String> = asks.iter().map(ToString::to_string).collect();
    for list in lists {
        for ask in of_containers {
            specs.push(format!(r#""{list}":[{{"name":"fine"}},{{"name":"c",{ask}}}]"#));
        }
    }
    for spec in specs {
        for (group, kind, object) in in_every_place(&format!(r#"{{"spec":{{{spec}}}}}"#)) {
            let found = judged(group, kind, None, Some(&object));
            assert_eq!(found, [Denial::PrivilegedPods], "{kind}: {spec}");
        }
    }
    let annotated = r#"{"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/c":"unconfined"}},"spec":{}}"#;
    for (group, kind, object) in in_every_place(annotated) {
        assert_eq!(judged(group, kind, None, Some(&object)), [Denial::PrivilegedPods], "{kind}");
    }
}

#[test]
fn a_pod_within_the_baseline_is_not_denied() {
    let pod = r#"{"spec":{"hostNetwork":false,"serviceAccountName":"default","securityContext":{"seccompProfile":{"type":"RuntimeDefault"},"sysctls":[{"name":"net.ipv4.tcp_syncookies","value":"1"}]},"volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"c","ports":[{"containerPort":1,"hostPort":0}],"securityContext":{"privileged":false,"procMount":"Default","capabilities":{"add":["CHOWN"],"drop":["ALL"]}},"livenessProbe":{"httpGet":{"port":80,"host":""}}}]}}"#;
    for (group, kind, object) in in_every_place(pod) {
        assert_eq!(judged(group, kind, None, Some(&object)), [], "{kind}");
    }
}

#[test]
fn a_privileged_template_may_stay_as_it_is_and_may_not_be_touched() {
    let deployment = |replicas: u8, image: &str| {
        format!(
            r#"{{"spec":{{"replicas":{replicas},"template":{{"spec":{{"containers":[{{"name":"c","image":"{image}","securityContext":{{"privileged":true}}}}]}}}}}}}}"#
        )
    };
    let before = deployment(1, "a");
    let after = |object: &str| judged("apps", "Deployment", Some(&before), Some(object));
    assert_eq!(after(&deployment(5, "a")), []);
    assert_eq!(after(&deployment(1, "evil")), [Denial::PrivilegedPods]);
    assert_eq!(judged("apps", "Deployment", Some(&before), None), [], "a deletion runs nothing");
}

#[test]
fn an_account_that_the_source_does_not_declare_is_foreign() {
    let pod = r#"{"spec":{"serviceAccountName":"robot"}}"#;
    for (group, kind, object) in in_every_place(pod) {
        assert_eq!(judged(group, kind, None, Some(&object)), [Denial::ServiceAccounts], "{kind}");
    }
    let old = pod.replace("serviceAccountName", "serviceAccount");
    assert_eq!(judged("", "Pod", None, Some(&old)), [Denial::ServiceAccounts]);
    let declared = |namespace: &str| {
        let kind = GroupKind::new("", "ServiceAccount");
        let accounts = Accounts::from([ObjectKey::new(kind, namespace, "robot")]);
        let pod = trimtab_json::parse(pod.as_bytes()).unwrap();
        judge(&key("", "Pod"), None, Some(&pod), &accounts).is_empty()
    };
    assert!(declared("n") && !declared("elsewhere"));
}

#[test]
fn a_namespaces_security_labels_may_not_be_set_changed_or_lost() {
    let label = |value: &str| {
        format!(r#"{{"metadata":{{"labels":{{"pod-security.kubernetes.io/enforce":"{value}"}}}}}}"#)
    };
    let (strict, loose) = (label("restricted"), label("privileged"));
    let judged = |before: Option<&str>, after: &str| judged("", "Namespace", before, Some(after));
    let denied = [Denial::PodSecurityLabels];
    assert_eq!(judged(None, &strict), denied);
    assert_eq!(judged(Some(&strict), &loose), denied);
    assert_eq!(judged(Some(&strict), "{}"), denied);
    assert_eq!(judged(Some(&strict), &strict), []);
    assert_eq!(judged(None, r#"{"metadata":{"labels":{"a":"b"}}}"#), []);
}

#[test]
fn a_secret_that_is_a_token_is_denied_before_and_after() {
    let token = r#"{"type":"kubernetes.io/service-account-token"}"#;
    let denied = [Denial::TokenSecrets];
    assert_eq!(judged("", "Secret", None, Some(token)), denied);
    assert_eq!(judged("", "Secret", Some(token), Some(r#"{"type":"Opaque"}"#)), denied);
    assert_eq!(judged("", "Secret", Some(token), None), denied);
    assert_eq!(judged("", "Secret", None, Some(r#"{"type":"Opaque"}"#)), []);
}

#[test]
fn what_looks_like_a_pod_template_in_another_kind_is_found_and_not_judged() {
    let custom = br#"{"spec":{"workers":[{"template":{"spec":{"containers":[{"image":"i"}]}}}]}}"#;
    let custom = trimtab_json::parse(custom).unwrap();
    let found = unjudged_template(&key("ex.io", "Workers"), &custom);
    assert_eq!(found.as_deref(), Some("/spec/workers/0/template/spec/containers"));
    let schema = br#"{"spec":{"properties":{"containers":{"type":"array"}}}}"#;
    let schema = trimtab_json::parse(schema).unwrap();
    assert_eq!(unjudged_template(&key("ex.io", "Definition"), &schema), None);
    assert_eq!(unjudged_template(&key("", "Pod"), &custom), None, "judged as what it is");
}

#[test]
fn a_denial_can_concern_only_what_the_grant_names() {
    let only = |text: &str| vec![KindPattern::parse(text).unwrap()];
    assert!(Denial::ALL.iter().all(|denial| denial.can_concern(&[KindPattern::Any], true)));
    assert!(!Denial::Rbac.can_concern(&only("ConfigMap"), true));
    assert!(!Denial::Definitions.can_concern(&[KindPattern::Any], false));
    assert!(Denial::PrivilegedPods.can_concern(&only("*.apps"), false));
}
