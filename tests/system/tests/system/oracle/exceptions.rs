//! Where we differ from the server's dry run on purpose: each kind of case with its argument. The
//! same list, in words for people, is in docs/comparison.md.

use super::judge;
use super::schema::Shape;
use super::tally::{Case, Wrong};
use serde_json::Value;
use trimtab_json::{Path, Step};

/// A kind of disagreement that is right.
pub(super) struct Exception {
    pub(super) name: &'static str,
    /// Why we are right to differ.
    pub(super) why: &'static str,
    pub(super) is: fn(&Case<'_>) -> bool,
}

/// All of them.
pub(super) const ALL: &[Exception] = &[
    Exception {
        name: "a quantity in other words",
        why: "the server keeps the spelling that was sent last; the amount is the same, and a write \
              for each spelling would never end where two writers spell differently",
        is: |case| {
            shape(case) == Some(Shape::Quantity)
                && amount(case.live)
                    .is_some_and(|live| amount(case.answer.or(case.desired)) == Some(live))
        },
    },
    Exception {
        name: "an int-or-string in the other type",
        why: "templates quote numbers; of its own types the server refuses the quoted number, so that \
              live is never the other one, and a custom resource that takes both means the same",
        is: |case| {
            shape(case) == Some(Shape::IntOrString) && plain(case.live) == plain(case.answer)
                || case.wrong == Wrong::Overlooked
                    && (case.text.contains("must contain at least one letter")
                        || case.text.contains("a valid percent string"))
        },
    },
    Exception {
        name: "a duration in other words",
        why: "controllers rewrite durations of custom resources in Go's own spelling; writing ours \
              back would never end",
        is: |case| {
            shape(case) == Some(Shape::Text)
                && seconds(case.live).is_some_and(|live| seconds(case.answer) == Some(live))
        },
    },
    Exception {
        name: "null",
        why: "null is what templates leave where nothing is meant; because of it alone nothing is \
              written, and what a person or controller put there is not wiped",
        is: |case| match case.wrong {
            Wrong::Overlooked => has_null(case.object) || case.live.is_some_and(has_null),
            // What follows from a neighbour that is null.
            Wrong::Missed if case.desired.is_none() => is_null(case) || has_null(case.object),
            _ => is_null(case),
        },
    },
    Exception {
        name: "the order of an autoscaler's metrics",
        why: "the controller reorders them; each is judged by itself",
        is: |case| {
            case.kind == "HorizontalPodAutoscaler"
                && case.path.to_string().starts_with("/spec/metrics")
                && same_in_any_order(case)
        },
    },
    Exception {
        name: "a spec that the server silently keeps",
        why: "a CertificateSigningRequest's spec is what it was made with, whatever is sent; desired \
              asks for something else, and to call that in sync would hide it (the host tells it as \
              a finding and writes nothing)",
        is: |case| {
            case.kind == "CertificateSigningRequest"
                && matches!(case.wrong, Wrong::FalseAlarm | Wrong::Left)
                && case.path.steps().first() == Some(&Step::Field("spec".into()))
        },
    },
    Exception {
        name: "a field that the server drops",
        why: "the schema has the field, and a feature gate turns it off (or, of a claim's dataSource, the \
              server does not know its kind); to call that in sync would hide it \
              (the host tells it as a finding and writes nothing)",
        is: |case| {
            matches!(case.wrong, Wrong::FalseAlarm | Wrong::Left)
                && case.live.is_none()
                && case.answer.is_none()
                && is_gated(case)
        },
    },
    Exception {
        name: "a micro-time without its fraction",
        why: "the server takes MicroTime with six digits only and refuses the shorter spelling; the \
              instant is the same, and the refusal is told when there is something to apply",
        is: |case| case.wrong == Wrong::Overlooked && case.text.contains("as \".000000\""),
    },
    Exception {
        name: "tolerations that admission appends to a pod",
        why: "their seconds are the cluster's configuration, which no object tells",
        is: |case| case.kind == "Pod" && case.path.to_string().starts_with("/spec/tolerations"),
    },
    Exception {
        name: "what the server writes into a claim template",
        why: "it sets the template's apiVersion, kind and status itself, whatever is sent",
        is: |case| {
            within(case, "volumeClaimTemplates")
                && (ends_in(case, &["apiVersion", "kind"]) || within(case, "status"))
        },
    },
    Exception {
        name: "an empty value where something in the cluster fills it",
        why: "manifests leave the place empty for an allocator, a binder or an injector; what that put \
              there is not taken away",
        is: |case| {
            case.wrong == Wrong::Missed
                && (ends_in(
                    case,
                    &[
                        "claimRef",
                        "caBundle",
                        "targetPort",
                        "nodePort",
                        "imagePullSecrets",
                        "priority",
                    ],
                ) && case.desired.is_none_or(is_empty)
                    || case.kind == "ReplicationController" && within(case, "selector"))
        },
    },
    Exception {
        name: "a setting that another one switches off",
        why: "the server drops a Service's sessionAffinityConfig where the affinity is None, and such; \
              desired contradicts itself, and to call that in sync would hide it",
        is: |case| {
            within(case, "sessionAffinityConfig") && case.wrong != Wrong::Missed
                || case.kind == "CustomResourceDefinition" && ends_in(case, &["webhook"])
                || is_switched_off(case)
        },
    },
    Exception {
        name: "what a ServiceAccount says of its secrets beside their names",
        why: "the server keeps the names alone; to call that in sync would hide it",
        is: |case| {
            case.kind == "ServiceAccount"
                && within(case, "secrets")
                && case.live.is_none()
                && case.answer.is_none()
        },
    },
    Exception {
        name: "an alias that brings a value back",
        why: "serviceAccount repeats serviceAccountName, and nobody owns it: the server fills the one \
              that was let go from the other",
        is: |case| ends_in(case, &["serviceAccountName", "serviceAccount"]),
    },
    Exception {
        name: "letting go of what cannot change",
        why: "live is what desired states; the server refuses because it would have to remove the rest \
              of a value that cannot change, or to reorder it",
        is: |case| {
            let fixed = ["immutable", "Forbidden", "cannot be cleared", "may not change"];
            case.wrong == Wrong::Overlooked
                && fixed.iter().any(|word| case.text.contains(word))
                && case.mutations.iter().any(|what| {
                    ["drop", "reorder", "state empty"].iter().any(|how| what.starts_with(how))
                })
        },
    },
    Exception {
        name: "amounts that a LimitRange fills from others",
        why: "which of them was filled depends on three neighbours; it costs a dry run",
        is: |case| {
            case.kind == "LimitRange"
                && case.desired.is_none_or(is_empty)
                && (within(case, "default") || within(case, "defaultRequest"))
        },
    },
    Exception {
        name: "a node's podCIDRs beside its podCIDR",
        why: "the server makes the list of the one, whatever the list says; to call that in sync would \
              hide it",
        is: |case| case.kind == "Node" && within(case, "podCIDRs"),
    },
    Exception {
        name: "an element without its key",
        why: "the server once took it from somebody, and refuses every apply from then on",
        is: |case| {
            case.text.contains("omits all key fields")
                || case.wrong == Wrong::Left
                    && case.path.steps().iter().any(|step| {
                        matches!(step, Step::Keyed(keys) if keys.iter().all(|(_, key)| key.is_empty()))
                    })
        },
    },
    Exception {
        name: "a key in other words",
        why: "the server merges by the text of a key and reads its meaning afterwards (a port 80.0, an \
              empty protocol): it takes one element for two and refuses, or reads it as the one there is; of a \
              number 2.0 in a set it forgets the element",
        is: |case| {
            let by_protocol = |step: &Step| matches!(step, Step::Keyed(keys) if keys.iter().any(|(name, _)| name == "protocol"));
            let empty = || case.object.to_string().contains("\"protocol\":\"\"");
            // We stated the key with an empty protocol once: the server knows it by that.
            let named = || case.managed.to_string().contains(r#"\"protocol\":\"\""#);
            let forgotten = matches!(case.path.steps().last(), Some(Step::Element(text)) if text.ends_with(".0"));
            matches!(case.wrong, Wrong::FalseAlarm | Wrong::Left) && forgotten
                || case.wrong == Wrong::Missed && within(case, "ports") && named()
                || case.wrong == Wrong::Overlooked
                    && case.text.contains("protocol: Unsupported value: \"\"")
                || case.wrong == Wrong::Overlooked
                    && case.text.contains("Duplicate value")
                    && case.mutations.iter().any(|what| what.starts_with("respell"))
                || case.wrong != Wrong::Missed
                    && case.path.steps().iter().any(by_protocol)
                    && empty()
        },
    },
    Exception {
        name: "the rollingUpdate of what is updated by hand",
        why: "it is a default only beside the type RollingUpdate; nothing reads it otherwise",
        is: |case| {
            let neighbour = case.path.parent().unwrap_or_default().join(Step::Field("type".into()));
            let how = judge::at(case.object, &neighbour, case.schema).and_then(Value::as_str);
            case.wrong == Wrong::Missed
                && ends_in(case, &["rollingUpdate"])
                && match how {
                    Some(how) => how != "RollingUpdate",
                    // Filled in only where the type is left out: beside the type it may be absent.
                    None => case.kind == "StatefulSet" && case.live.is_none(),
                }
        },
    },
    Exception {
        name: "the label that names a Namespace",
        why: "the server puts it back when all labels are let go",
        is: |case| case.kind == "Namespace" && case.path.to_string() == "/metadata/labels",
    },
    Exception {
        name: "the count of a DaemonSet's templates",
        why: "the server counts each apply that touches the template, the order of a list included, in \
              an annotation of its own",
        is: |case| {
            case.kind == "DaemonSet"
                && case.wrong == Wrong::Missed
                && ends_in(case, &["deprecated.daemonset.template.generation"])
        },
    },
    Exception {
        name: "when a taint was added",
        why: "the server writes the time anew whenever the taint changes",
        is: |case| ends_in(case, &["timeAdded"]),
    },
    Exception {
        name: "a struct that is emptied",
        why: "the server drops it together with the fields that were let go, and keeps it from the next \
              apply on: a difference is left, and the next pass mends it",
        is: |case| {
            let hollow = |value: &Value| match value {
                Value::Object(members) => members.values().all(is_empty),
                other => is_empty(other),
            };
            match case.wrong {
                Wrong::Left => {
                    case.live.is_none_or(Value::is_null) && case.desired.is_some_and(hollow)
                }
                Wrong::Missed => {
                    case.desired.is_none()
                        && case.answer.is_none()
                        && case.live.is_some_and(|live| *live == serde_json::json!({}))
                }
                _ => false,
            }
        },
    },
];

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        other => *other == 0,
    }
}

/// Whether desired states a field of a Service that the type which it states switches off.
fn is_switched_off(case: &Case<'_>) -> bool {
    let stated = case.object["spec"]["type"].as_str().unwrap_or_default();
    let kind = if stated.is_empty() { "ClusterIP" } else { stated };
    let outside = matches!(kind, "NodePort" | "LoadBalancer");
    case.kind == "Service"
        && (ends_in(case, &["nodePort", "externalTrafficPolicy"]) && !outside
            || ends_in(case, &["loadBalancerClass", "allocateLoadBalancerNodePorts"])
                && kind != "LoadBalancer"
            || ends_in(case, &["internalTrafficPolicy"]) && kind == "ExternalName")
}

/// Fields that the server of these tests drops, each with what holds it.
const GATED: &[&str] = &[
    "spec/schedulingGroup",
    "spec/preferredHolder",
    "spec/strategy",
    "configMap/defaultUser",
    "secret/defaultUser",
    "downwardAPI/defaultUser",
    "projected/defaultUser",
    "items/*/user",
    "serviceAccountToken/user",
    "podCertificate/user",
    "clusterTrustBundle/user",
    "emptyDir/mode",
    "grpc/mode",
    "spec/evictionResponders",
    "lifecycle/stopSignal",
    "spec/podPreemptionPolicy",
    "spec/configSource",
    "httpGet/protocol",
    "spec/partitionTypeAttribute",
    "spec/dataSource",
    "spec/scheduling",
];

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}

/// Whether the path leads through a field of this name.
fn within(case: &Case<'_>, name: &str) -> bool {
    case.path.steps().iter().any(|step| matches!(step, Step::Field(field) if field == name))
}

/// Whether the path leads through such a field.
fn is_gated(case: &Case<'_>) -> bool {
    let path = format!("{}/", super::tally::fields(case.path));
    GATED.iter().any(|gated| path.contains(&format!("/{gated}/")))
}

fn ends_in(case: &Case<'_>, names: &[&str]) -> bool {
    matches!(case.path.steps().last(), Some(Step::Field(name)) if names.contains(&name.as_str()))
}

fn shape(case: &Case<'_>) -> Option<Shape> {
    Some(case.schema?.follow(case.path)?.shape())
}

fn plain(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Whether desired says `null` at the place or around it.
fn is_null(case: &Case<'_>) -> bool {
    let steps = case.path.steps();
    (1..=steps.len()).any(|length| {
        let path: Path = steps.iter().take(length).cloned().collect();
        judge::at(case.object, &path, case.schema).is_some_and(Value::is_null)
    }) || case.desired.is_some_and(has_null)
        || matches!(steps.last(), Some(Step::Field(name)) if case.kind == "Secret"
            && case.object["stringData"].get(name).is_some_and(Value::is_null))
}

fn same_in_any_order(case: &Case<'_>) -> bool {
    // What is within one metric has no counterpart by position: the whole list decides.
    let metrics = case.object.pointer("/spec/metrics").and_then(Value::as_array);
    metrics.is_some_and(|metrics| metrics.len() > 1)
        && case.mutations.iter().any(|what| what.starts_with("reorder /spec/metrics"))
}

/// A quantity in billionths. Written for this test: not the code under test.
fn amount(value: Option<&Value>) -> Option<i128> {
    let text = plain(value)?;
    let text = text.strip_prefix('+').unwrap_or(&text);
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let unit: i128 = match suffix {
        "n" => 1,
        "u" => 1_000,
        "m" => 1_000_000,
        "" => 1_000_000_000,
        "k" => 1_000_000_000_000,
        "M" => 1_000_000_000_000_000,
        "G" => 1_000_000_000_000_000_000,
        "T" => 1_000_000_000_000_000_000_000,
        "Ki" => 1_000_000_000 << 10,
        "Mi" => 1_000_000_000 << 20,
        "Gi" => 1_000_000_000 << 30,
        "Ti" => 1_000_000_000 << 40,
        exponent => {
            let exponent = exponent.strip_prefix(['e', 'E'])?;
            1_000_000_000_i128.checked_mul(10_i128.checked_pow(exponent.parse().ok()?)?)?
        }
    };
    Some(digits * unit / 10_i128.checked_pow(fraction.len().try_into().ok()?)?)
}

/// Of the durations that the generator writes.
fn seconds(value: Option<&Value>) -> Option<u64> {
    let text = value?.as_str()?;
    let (mut total, mut number) = (0, String::new());
    for letter in text.chars() {
        let unit = match letter {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            digit => {
                number.push(digit);
                continue;
            }
        };
        total += unit * std::mem::take(&mut number).parse::<u64>().ok()?;
    }
    number.is_empty().then_some(total)
}
