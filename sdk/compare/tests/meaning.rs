//! One row for each way in which two objects can mean the same or not.

mod common;

mod exclusive;

use common::told;

/// An object of a kind with a spec or other top-level members.
fn object(kind: &str, members: &str) -> String {
    let version = match kind {
        "Deployment" => "apps/v1",
        "HorizontalPodAutoscaler" => "autoscaling/v2",
        "Ship" => "sea.test/v1",
        "Wagon" => "rail.test/v1",
        _ => "v1",
    };
    format!(r#"{{"apiVersion":"{version}","kind":"{kind}","metadata":{{"name":"x"}},{members}}}"#)
}

/// Rows of desired members, live members and what is told; members are within `spec` if `spec`.
fn rows(kind: &str, spec: bool, rows: &[(&str, &str, &str)]) {
    for (desired, live, expected) in rows {
        let whole = |members: &str| match spec {
            true => object(kind, &format!("\"spec\":{{{members}}}")),
            false => object(kind, members),
        };
        assert_eq!(told(&whole(desired), &whole(live)), *expected, "{kind}: {desired} | {live}");
    }
}

/// Rows of two containers called `a`.
fn containers(list: &[(&str, &str, &str)]) {
    let one = |members: &str| format!(r#""containers":[{{"name":"a",{members}}}]"#);
    for (desired, live, expected) in list {
        let expected = expected.replace('@', "/spec/containers/[name=a]");
        rows("Pod", true, &[(&one(desired), &one(live), &expected)]);
    }
}

#[test]
fn quantities_mean_their_amount() {
    containers(&[
        (r#""resources":{"limits":{"cpu":"1000m"}}"#, r#""resources":{"limits":{"cpu":"1"}}"#, ""),
        (r#""resources":{"limits":{"cpu":0.25}}"#, r#""resources":{"limits":{"cpu":"250m"}}"#, ""),
        (r#""resources":{"limits":{"cpu":2}}"#, r#""resources":{"limits":{"cpu":"2"}}"#, ""),
        (
            r#""resources":{"limits":{"memory":"2048Mi"}}"#,
            r#""resources":{"limits":{"memory":"2Gi"}}"#,
            "",
        ),
        (
            r#""resources":{"limits":{"memory":"1G"}}"#,
            r#""resources":{"limits":{"memory":"1Gi"}}"#,
            "changed @/resources/limits/memory",
        ),
        (
            r#""resources":{"limits":{"cpu":true}}"#,
            r#""resources":{"limits":{"cpu":"1"}}"#,
            "type_mismatch: @/resources/limits/cpu must be a quantity, and is boolean",
        ),
    ]);
    rows(
        "ConfigMap",
        false,
        &[(r#""data":{"a":"1000m"}"#, r#""data":{"a":"1"}"#, "changed /data/a")],
    );
}

#[test]
fn quantities_are_known_in_pod_templates_that_no_schema_describes() {
    rows(
        "Wagon",
        true,
        &[
            (
                r#""t":{"containers":[{"name":"a","resources":{"requests":{"cpu":1,"memory":"1024Mi"}}}]}"#,
                r#""t":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1","memory":"1Gi"}}}]}"#,
                "",
            ),
            (
                r#""resources":{"requests":{"cpu":"1"}}"#,
                r#""resources":{"requests":{"cpu":"1000m"}}"#,
                "changed /spec/resources/requests/cpu",
            ),
        ],
    );
}

#[test]
fn empty_and_absent_are_read_as_the_types_are() {
    let rolled = r#""template":{"metadata":{"labels":{"a":"b"}}}"#;
    rows(
        "Deployment",
        true,
        &[
            (r#""template":{"metadata":{"annotations":{},"labels":{"a":"b"}}}"#, rolled, ""),
            (r#""paused":false,"minReadySeconds":0"#, r#""replicas":1"#, ""),
            (r#""paused":true"#, r#""replicas":1"#, "missing /spec/paused"),
            (r#""replicas":0"#, r#""replicas":1"#, "changed /spec/replicas"),
            (r#""replicas":null"#, r#""replicas":4"#, ""),
            (r#""strategy":{}"#, r#""replicas":1"#, ""),
            (r#""strategy":{"type":""}"#, r#""strategy":{"type":"RollingUpdate"}"#, ""),
            (
                r#""strategy":{"type":""}"#,
                r#""strategy":{"type":"Recreate"}"#,
                "changed /spec/strategy/type",
            ),
        ],
    );
    containers(&[
        (r#""resources":{"requests":{},"limits":{}}"#, r#""resources":{}"#, ""),
        (r#""resources":{"requests":{}}"#, r#""image":"i""#, ""),
        (r#""env":[{"name":"A","value":""}]"#, r#""env":[{"name":"A"}]"#, ""),
        (
            r#""securityContext":{"runAsUser":0}"#,
            r#""securityContext":{}"#,
            "missing @/securityContext/runAsUser",
        ),
        (r#""securityContext":{}"#, r#""image":"i""#, "missing @/securityContext"),
        (
            r#""readinessProbe":{"timeoutSeconds":0}"#,
            r#""readinessProbe":{"timeoutSeconds":1}"#,
            "",
        ),
        (r#""args":[]"#, r#""args":["x"]"#, "changed @/args"),
    ]);
    rows(
        "Pod",
        true,
        &[
            (
                r#""automountServiceAccountToken":false"#,
                r#""dnsPolicy":"x""#,
                "missing /spec/automountServiceAccountToken",
            ),
            (r#""hostNetwork":false"#, r#""dnsPolicy":"ClusterFirst""#, ""),
            (
                r#""volumes":[{"name":"e","emptyDir":{}}]"#,
                r#""volumes":[{"name":"e"}]"#,
                "missing /spec/volumes/[name=e]/emptyDir",
            ),
        ],
    );
}

#[test]
fn custom_resources_store_what_is_stated() {
    rows(
        "Ship",
        true,
        &[
            (r#""sails":0"#, r#""flag":"none""#, "missing /spec/sails"),
            (r#""flag":"none""#, r#""sails":1"#, ""),
            (r#""sails":1"#, r#""sails":1,"flag":"none","crew":[]"#, ""),
            (r#""crew":[{"name":"a"}]"#, r#""crew":[{"name":"a","rank":"mate"}]"#, ""),
            (r#""hold":{"x":{},"y":null}"#, r#""hold":{"z":1}"#, "missing /spec/hold/x"),
            (r#""hold":{"x":"1"}"#, r#""hold":{"x":1}"#, "changed /spec/hold/x"),
            (r#""rudder":1"#, r#""sails":1"#, "pruned /spec/rudder"),
            (
                r#""sails":"3""#,
                r#""sails":3"#,
                "type_mismatch: /spec/sails must be an integer, and is string",
            ),
            (r#""draught":"8""#, r#""draught":8"#, ""),
            (r#""draught":"8m""#, r#""draught":8"#, "changed /spec/draught"),
            (r#""sails":1e1"#, r#""sails":10"#, ""),
            (r#""sails":9007199254740993"#, r#""sails":9007199254740992"#, "changed /spec/sails"),
            (r#""port":"a""#, r#""port":"b""#, "changed /spec/port fixed /spec/port"),
        ],
    );
}

#[test]
fn durations_are_equal_where_a_controller_respelled_them() {
    rows(
        "Ship",
        true,
        &[
            (r#""interval":"1h""#, r#""interval":"1h0m0s""#, ""),
            (r#""interval":"1h""#, r#""interval":"60m""#, "changed /spec/interval"),
            (r#""interval":"1h""#, r#""interval":"2h0m0s""#, "changed /spec/interval"),
        ],
    );
    rows(
        "ConfigMap",
        false,
        &[(r#""data":{"a":"1h"}"#, r#""data":{"a":"1h0m0s"}"#, "changed /data/a")],
    );
}

#[test]
fn keyed_lists_go_by_their_keys() {
    containers(&[
        (
            r#""ports":[{"containerPort":80}]"#,
            r#""ports":[{"containerPort":80,"protocol":"TCP"}]"#,
            "",
        ),
        (
            r#""ports":[{"containerPort":53},{"containerPort":53,"protocol":"UDP"}]"#,
            r#""ports":[{"containerPort":53,"protocol":"TCP"}]"#,
            "missing @/ports/[containerPort=53,protocol=UDP]",
        ),
        (
            r#""env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]"#,
            r#""env":[{"name":"B","value":"2"},{"name":"A","value":"1"}]"#,
            "",
        ),
        (
            r#""env":[{"name":"A","value":"1"}]"#,
            r#""env":[{"name":"A","value":"2"}]"#,
            "changed @/env/[name=A]/value",
        ),
        (
            r#""env":[{"name":"A","value":"1"},{"name":"A","value":"1"}]"#,
            r#""env":[]"#,
            "duplicate_list_key: @/env has two elements with the key [name=A]",
        ),
        (
            r#""env":[{"name":"A","value":"1"}]"#,
            r#""env":[{"name":"A","value":"0"},{"name":"A","value":"1"}]"#,
            "changed @/env",
        ),
        (
            r#""env":["A"]"#,
            r#""env":[]"#,
            "type_mismatch: @/env/0 must be an object, and is string",
        ),
        (
            r#""env":[{"name":"A"},{"name":"B"}]"#,
            r#""image":"i""#,
            "missing @/env/[name=A]\nmissing @/env/[name=B]",
        ),
    ]);
}

#[test]
fn atomic_lists_go_by_their_order_and_let_defaults_be() {
    containers(&[
        (r#""args":["a","b"]"#, r#""args":["b","a"]"#, "changed @/args/0\nchanged @/args/1"),
        (r#""args":["a"]"#, r#""args":["a","b"]"#, "changed @/args"),
        (
            r#""args":["a",true]"#,
            "\"args\":[]",
            "type_mismatch: @/args/1 must be a string, and is boolean",
        ),
    ]);
    rows(
        "Ship",
        true,
        &[
            (r#""legs":[{"to":"a"}]"#, r#""legs":[{"to":"a","by":"wind"}]"#, ""),
            (
                r#""legs":[{"to":"a"}]"#,
                r#""legs":[{"to":"a","by":"oar"}]"#,
                "changed /spec/legs/0/by",
            ),
            (r#""stops":["a","b"]"#, r#""stops":["b","a"]"#, ""),
            (
                r#""stops":["a","b"]"#,
                r#""stops":["b","c"]"#,
                "missing /spec/stops/[=a]\nstray /spec/stops/[=c]",
            ),
            (
                r#""stops":["a","a"]"#,
                r#""stops":["a"]"#,
                "duplicate_list_key: /spec/stops has two elements with the key [=a]",
            ),
        ],
    );
}

#[test]
fn autoscaler_metrics_are_a_multiset() {
    let metric = |name: &str, target: &str| {
        format!(r#"{{"type":"Resource","resource":{{"name":"{name}","target":"{target}"}}}}"#)
    };
    let list = |metrics: &[String]| format!("\"metrics\":[{}]", metrics.join(","));
    let (cpu, memory) = (metric("cpu", "1"), metric("memory", "1Gi"));
    let copies = [memory.clone(), cpu.clone(), cpu.clone(), r#"{"type":""}"#.into()];
    rows(
        "HorizontalPodAutoscaler",
        true,
        &[
            (
                &list(&[cpu.clone(), metric("memory", "1024Mi")]),
                &list(&[memory.clone(), cpu.clone()]),
                "",
            ),
            (&list(&[cpu.clone(), memory.clone()]), &list(&copies), ""),
            (
                &list(&[cpu.clone(), memory.clone()]),
                &list(&[metric("memory", "2Gi"), cpu.clone()]),
                "changed /spec/metrics/1/resource/target",
            ),
            (&list(&[cpu.clone(), memory.clone()]), &list(&[cpu]), "changed /spec/metrics"),
            // Twice in both, however desired spells it.
            (
                &list(&[memory.clone(), metric("memory", "1024Mi")]),
                &list(&[memory.clone(), memory.clone()]),
                "",
            ),
            (&list(&[memory.clone(), memory.clone()]), &list(&[memory]), "changed /spec/metrics"),
        ],
    );
}

#[test]
fn a_host_port_is_filled_in_for_a_pod_and_not_for_its_template() {
    let spec = |port: &str| {
        format!(r#"{{"containers":[{{"name":"a","ports":[{{"containerPort":80{port}}}]}}]}}"#)
    };
    let (zero, filled) = (spec(r#","hostPort":0"#), spec(r#","hostPort":80"#));
    let pod = |spec: &str| object("Pod", &format!("\"spec\":{spec}"));
    assert_eq!(told(&pod(&zero), &pod(&filled)), "");
    let template = |spec: &str| {
        object("Deployment", &format!("\"spec\":{{\"template\":{{\"spec\":{spec}}}}}"))
    };
    assert_eq!(
        told(&template(&zero), &template(&filled)),
        "changed /spec/template/spec/containers/[name=a]/ports/[containerPort=80,protocol=TCP]/hostPort"
    );
    assert_eq!(told(&template(&spec("")), &template(&filled)), "");
}

#[test]
fn services_keep_what_the_server_allocates() {
    rows(
        "Service",
        true,
        &[
            (
                r#""clusterIP":"","ports":[{"port":80,"nodePort":0}]"#,
                r#""clusterIP":"10.0.0.7","type":"ClusterIP","ports":[{"port":80,"protocol":"TCP","targetPort":80,"nodePort":30080}]"#,
                "",
            ),
            (r#""clusterIP":"None""#, r#""clusterIP":"10.0.0.7""#, "changed /spec/clusterIP"),
            (
                r#""ports":[{"port":80,"targetPort":"http"}]"#,
                r#""ports":[{"port":80,"targetPort":8080}]"#,
                "changed /spec/ports/[port=80,protocol=TCP]/targetPort",
            ),
            (
                r#""selector":{"a":"b"}"#,
                r#""selector":{"a":"b","c":"d"}"#,
                "changed /spec/selector/c",
            ),
        ],
    );
}

#[test]
fn secrets_are_compared_by_content() {
    rows(
        "Secret",
        false,
        &[
            (r#""stringData":{"a":"sea"}"#, r#""data":{"a":"c2Vh"}"#, ""),
            (r#""stringData":{"a":"sea"}"#, r#""data":{"a":"c2Vx"}"#, "changed /data/a"),
            (r#""stringData":{"a":"sea"}"#, r#""type":"Opaque""#, "missing /data/a"),
            (
                r#""stringData":{"a":"sea"},"data":{"a":"eA==","b":"eA=="}"#,
                r#""data":{"a":"c2Vh","b":"eA=="}"#,
                "",
            ),
            (r#""data":{"a":"c2\nVh"}"#, r#""data":{"a":"c2Vh"}"#, ""),
            (r#""data":null"#, r#""data":{"a":"c2Vh"}"#, ""),
            (r#""data":{"b":"eA=="}"#, r#""data":{"a":"c2Vh","b":"eA=="}"#, "stray /data/a"),
            (
                r#""data":{"a":{"deep":"hush"}}"#,
                r#""data":{}"#,
                "type_mismatch: /data/a must be a string, and is object",
            ),
            (
                r#""stringData":{"a":1}"#,
                r#""data":{}"#,
                "type_mismatch: /stringData/a must be a string, and is number",
            ),
        ],
    );
    rows(
        "ConfigMap",
        false,
        &[(r#""binaryData":{"a":"c2V\nh"}"#, r#""binaryData":{"a":"c2Vh"}"#, "")],
    );
}

#[test]
fn text_within_strings_is_text() {
    rows(
        "ConfigMap",
        false,
        &[
            (r#""data":{"a":"{\"x\": 1}"}"#, r#""data":{"a":"{\"x\":1}"}"#, "changed /data/a"),
            (r#""data":{"a":"x\r\n"}"#, r#""data":{"a":"x\n"}"#, "changed /data/a"),
            (r#""data":{"a":"yes"}"#, r#""data":{"a":"true"}"#, "changed /data/a"),
            (
                r#""data":{"a":true}"#,
                r#""data":{"a":"true"}"#,
                "type_mismatch: /data/a must be a string, and is boolean",
            ),
            (r#""data":{"a":"1"}"#, r#""immutable":false"#, "missing /data/a"),
            (r#""data":{"a":"1"}"#, r#""data":{"a":"1","b":"2"}"#, "stray /data/b"),
        ],
    );
}

#[test]
fn metadata_is_judged_by_what_people_state_there() {
    let with = |metadata: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{metadata},"status":{{"x":1}}}}"#
        )
    };
    let live = with(
        r#"{"name":"c","uid":"u","resourceVersion":"7","generation":2,"labels":{"a":"1","added":"x"},
        "annotations":{"b":"2"},"finalizers":["theirs","ours"],"creationTimestamp":"2024-01-01T00:00:00Z"}"#,
    );
    for (desired, expected) in [
        (
            r#"{"name":"c","namespace":"n","uid":"old","resourceVersion":"1","creationTimestamp":null}"#,
            "",
        ),
        (r#"{"labels":{"a":"1"},"annotations":{"b":"2"},"finalizers":["ours"]}"#, ""),
        (r#"{"labels":{"a":"2"}}"#, "changed /metadata/labels/a"),
        (r#"{"labels":{"new/er":"2"}}"#, "missing /metadata/labels/new~1er"),
        (r#"{"finalizers":["mine"]}"#, "missing /metadata/finalizers/[=mine]"),
        (
            r#"{"annotations":{"n":1}}"#,
            "type_mismatch: /metadata/annotations/n must be a string, and is number",
        ),
    ] {
        assert_eq!(told(&with(desired), &live), expected, "{desired}");
    }
    assert_eq!(
        told(&with(r#"{"labels":{"a":"1"}}"#), &with(r#"{"name":"c"}"#)),
        "missing /metadata/labels/a"
    );
}

#[test]
fn what_cannot_change_says_so() {
    rows(
        "Deployment",
        true,
        &[
            (
                r#""selector":{"matchLabels":{"a":"1"}}"#,
                r#""selector":{"matchLabels":{"a":"2"}}"#,
                "changed /spec/selector/matchLabels/a fixed /spec/selector",
            ),
            (
                r#""selector":{"matchLabels":{"a":"1"}}"#,
                r#""selector":{"matchLabels":{"a":"1","b":"2"}}"#,
                "changed /spec/selector/matchLabels/b fixed /spec/selector",
            ),
        ],
    );
}

#[test]
fn content_of_what_says_that_it_is_immutable_cannot_change() {
    let sealed = |kind: &str, desired: &str, live: &str| {
        told(&object(kind, desired), &object(kind, &format!("\"immutable\":true,{live}")))
    };
    for kind in ["ConfigMap", "Secret"] {
        let labelled = |label: &str, data: &str| {
            let members = format!(r#""immutable":true,"data":{{"a":"{data}"}}"#);
            let name = format!(r#""name":"x","labels":{{"l":"{label}"}}"#);
            object(kind, &members).replace(r#""name":"x""#, &name)
        };
        let found = told(&labelled("1", "MQ=="), &labelled("2", "Mg=="));
        let mut lines: Vec<&str> = found.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["changed /data/a fixed /data", "changed /metadata/labels/l"], "{kind}");
    }
    for (kind, desired, live, found) in [
        ("ConfigMap", r#""data":{"a":"1"}"#, r#""data":{}"#, "missing /data/a fixed /data"),
        (
            "ConfigMap",
            r#""data":{"a":"1"}"#,
            r#""data":{"a":"1","b":"2"}"#,
            "stray /data/b fixed /data",
        ),
        (
            "ConfigMap",
            r#""binaryData":{"a":"MQ=="}"#,
            r#""binaryData":{"a":"Mg=="}"#,
            "changed /binaryData/a fixed /binaryData",
        ),
        (
            "ConfigMap",
            r#""immutable":false,"data":{"a":"1"}"#,
            r#""data":{"a":"1"}"#,
            "changed /immutable fixed /immutable",
        ),
        (
            "Secret",
            r#""stringData":{"a":"1"}"#,
            r#""data":{"a":"Mg=="}"#,
            "changed /data/a fixed /data",
        ),
    ] {
        assert_eq!(sealed(kind, desired, live), found, "{kind} {desired}");
    }
}

#[test]
fn an_object_that_does_not_exist_is_missing_and_still_checked() {
    let pod = |spec: &str| object("Pod", &format!("\"spec\":{spec}"));
    assert_eq!(told(&pod("{}"), "-"), "missing ");
    assert_eq!(told(&pod(r#"{"dnsPolcy":"x"}"#), "-"), "missing \npruned /spec/dnsPolcy");
    assert_eq!(
        told(&pod(r#"{"containers":[{"name":"a","env":[{"name":"A"},{"name":"A"}]}]}"#), "-"),
        "duplicate_list_key: /spec/containers/[name=a]/env has two elements with the key [name=A]"
    );
    assert_eq!(told("[]", "-"), "not_a_kubernetes_object: not a JSON object");
}

#[test]
fn volumes_of_the_service_account_are_not_stray_and_others_are() {
    rows(
        "Pod",
        true,
        &[(
            r#""containers":[{"name":"a"}]"#,
            r#""containers":[{"name":"a","imagePullPolicy":"Always","volumeMounts":[
                {"name":"kube-api-access-x","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"},
                {"name":"t","mountPath":"/tmp"}]}],
                "volumes":[{"name":"kube-api-access-x"},{"name":"t","emptyDir":{}}]"#,
            "stray /spec/containers/[name=a]/volumeMounts/[mountPath=~1tmp]\nstray /spec/volumes/[name=t]",
        )],
    );
}

#[test]
fn tolerations_that_admission_appends_are_let_be() {
    let added = r#"{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}"#;
    let own = r#"{"key":"a","operator":"Exists"}"#;
    rows(
        "Pod",
        true,
        &[
            (&format!("\"tolerations\":[{own}]"), &format!("\"tolerations\":[{own},{added}]"), ""),
            (
                &format!("\"tolerations\":[{own}]"),
                &format!("\"tolerations\":[{own},{own}]"),
                "changed /spec/tolerations",
            ),
        ],
    );
}
