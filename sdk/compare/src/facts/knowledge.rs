//! What OpenAPI documents do not say of Kubernetes' own types: the Go defaulting functions
//! (`pkg/apis/*/*/defaults.go`), what the server, its admission plugins and binders fill in, and
//! what validation (`pkg/apis/*/validation`) does not let change.
//!
//! By the Go type's short name and the field's JSON name. Defaults are JSON text. Defaults that
//! depend on a neighbour (`imagePullPolicy` on the tag) are in `walk/context.rs`.

/// One thing that is known of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Says {
    /// Absent reads as this.
    Default(&'static str),
    /// Absent and zero or empty read as this: the field is no pointer.
    ZeroDefault(&'static str),
    /// When absent, or empty and no pointer, something in the control plane fills it: what stands
    /// there unstated is never stray.
    ServerSets,
    /// When empty, something in the control plane may fill it; but people set it too, so what
    /// stands there unstated is stray where `managedFields` says so.
    EmptyUnset,
    /// Cannot change once set.
    Immutable,
    /// The order of the list says nothing and controllers change it.
    Multiset,
}

use Says::{
    Default as D, EmptyUnset as E, Immutable as I, Multiset as M, ServerSets as S, ZeroDefault as Z,
};

/// What is known of a field.
pub(super) fn of<'s>(owner: &str, field: &'s str) -> impl Iterator<Item = Says> + use<'s> {
    let fields = TABLE.iter().find(|(name, _)| *name == owner).map(|(_, fields)| fields.iter());
    fields.into_iter().flatten().filter(move |(name, _)| *name == field).map(|(_, says)| *says)
}

type Fields = &'static [(&'static str, Says)];

const PROBE: Fields = &[
    ("timeoutSeconds", Z("1")),
    ("periodSeconds", Z("10")),
    ("successThreshold", Z("1")),
    ("failureThreshold", Z("3")),
];
const CONTAINER: Fields = &[
    ("terminationMessagePath", Z("\"/dev/termination-log\"")),
    ("terminationMessagePolicy", Z("\"File\"")),
];
const WEBHOOK: Fields = &[
    ("failurePolicy", D("\"Fail\"")),
    ("matchPolicy", D("\"Equivalent\"")),
    ("timeoutSeconds", D("10")),
    ("reinvocationPolicy", D("\"Never\"")),
    ("namespaceSelector", D("{}")),
    ("objectSelector", D("{}")),
];
const MATCH: Fields = &[
    ("matchPolicy", D("\"Equivalent\"")),
    ("namespaceSelector", D("{}")),
    ("objectSelector", D("{}")),
];
const FILES: Fields = &[("defaultMode", D("420"))];
const CPU_80: &str = r#"[{"resource":{"name":"cpu","target":{"averageUtilization":80,"type":"Utilization"}},"type":"Resource"}]"#;
const SCALE_UP: &str = r#"{"policies":[{"periodSeconds":15,"type":"Pods","value":4},{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Max","stabilizationWindowSeconds":0}"#;
const SCALE_DOWN: &str =
    r#"{"policies":[{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Max"}"#;
const DEVICES: Fields = &[("allocationMode", Z("\"ExactCount\""))];

const TABLE: &[(&str, Fields)] = &[
    // core: pods
    (
        "PodSpec",
        &[
            ("restartPolicy", Z("\"Always\"")),
            ("terminationGracePeriodSeconds", D("30")),
            ("dnsPolicy", Z("\"ClusterFirst\"")),
            ("schedulerName", Z("\"default-scheduler\"")),
            ("securityContext", D("{}")),
            ("enableServiceLinks", D("true")),
            ("serviceAccount", S),
            ("serviceAccountName", Z("\"default\"")),
            ("nodeName", E),
            ("priority", S),
            ("preemptionPolicy", D("\"PreemptLowerPriority\"")),
            ("ephemeralContainers", E),
            ("imagePullSecrets", E),
        ],
    ),
    ("Container", CONTAINER),
    ("EphemeralContainer", CONTAINER),
    ("Probe", PROBE),
    ("HTTPGetAction", &[("path", Z("\"/\"")), ("scheme", Z("\"HTTP\""))]),
    ("GRPCAction", &[("service", D("\"\""))]),
    ("ContainerPort", &[("protocol", Z("\"TCP\""))]),
    ("ObjectFieldSelector", &[("apiVersion", Z("\"v1\""))]),
    ("ResourceFieldSelector", &[("divisor", Z("\"0\""))]),
    ("SecretVolumeSource", FILES),
    ("ConfigMapVolumeSource", FILES),
    ("DownwardAPIVolumeSource", FILES),
    ("ProjectedVolumeSource", FILES),
    ("ServiceAccountTokenProjection", &[("expirationSeconds", D("3600"))]),
    ("HostPathVolumeSource", &[("type", D("\"\""))]),
    ("ISCSIVolumeSource", &[("iscsiInterface", Z("\"default\""))]),
    ("ISCSIPersistentVolumeSource", &[("iscsiInterface", Z("\"default\""))]),
    (
        "RBDVolumeSource",
        &[
            ("pool", Z("\"rbd\"")),
            ("user", Z("\"admin\"")),
            ("keyring", Z("\"/etc/ceph/keyring\"")),
        ],
    ),
    (
        "RBDPersistentVolumeSource",
        &[
            ("pool", Z("\"rbd\"")),
            ("user", Z("\"admin\"")),
            ("keyring", Z("\"/etc/ceph/keyring\"")),
        ],
    ),
    (
        "AzureDiskVolumeSource",
        &[
            ("cachingMode", D("\"ReadWrite\"")),
            ("kind", D("\"Shared\"")),
            ("fsType", D("\"ext4\"")),
            ("readOnly", D("false")),
        ],
    ),
    ("ScaleIOVolumeSource", &[("storageMode", Z("\"ThinProvisioned\"")), ("fsType", Z("\"xfs\""))]),
    (
        "ScaleIOPersistentVolumeSource",
        &[("storageMode", Z("\"ThinProvisioned\"")), ("fsType", Z("\"xfs\""))],
    ),
    (
        "TopologySpreadConstraint",
        &[("nodeAffinityPolicy", D("\"Honor\"")), ("nodeTaintsPolicy", D("\"Ignore\""))],
    ),
    // core: services and the rest
    (
        "ServiceSpec",
        &[
            ("type", Z("\"ClusterIP\"")),
            ("sessionAffinity", Z("\"None\"")),
            ("internalTrafficPolicy", D("\"Cluster\"")),
            ("externalTrafficPolicy", Z("\"Cluster\"")),
            ("clusterIP", S),
            ("clusterIPs", S),
            ("ipFamilies", S),
            ("ipFamilyPolicy", S),
            ("healthCheckNodePort", S),
        ],
    ),
    ("ServicePort", &[("protocol", Z("\"TCP\"")), ("nodePort", S), ("targetPort", E)]),
    ("ClientIPConfig", &[("timeoutSeconds", D("10800"))]),
    ("ServiceAccount", &[("secrets", E), ("imagePullSecrets", E)]),
    ("Secret", &[("type", Z("\"Opaque\"")), ("type", I)]),
    ("NamespaceSpec", &[("finalizers", S)]),
    ("Namespace", &[("spec", S)]),
    (
        "PersistentVolumeClaimSpec",
        &[
            ("volumeMode", D("\"Filesystem\"")),
            ("volumeName", S),
            ("storageClassName", S),
            ("storageClassName", I),
            ("accessModes", I),
            ("volumeMode", I),
            ("selector", I),
            ("dataSource", S),
            ("dataSourceRef", S),
        ],
    ),
    (
        "PersistentVolumeSpec",
        &[
            ("volumeMode", D("\"Filesystem\"")),
            ("persistentVolumeReclaimPolicy", Z("\"Retain\"")),
            ("claimRef", S),
            ("volumeMode", I),
        ],
    ),
    ("PersistentVolumeClaim", &[("status", S), ("apiVersion", S), ("kind", S)]),
    ("Node", &[("spec", S)]),
    ("NodeSpec", &[("podCIDR", S), ("podCIDRs", S)]),
    ("ReplicationControllerSpec", &[("replicas", D("1")), ("selector", S)]),
    ("EndpointPort", &[("protocol", Z("\"TCP\"")), ("name", D("\"\""))]),
    // apps
    (
        "DeploymentSpec",
        &[
            ("replicas", D("1")),
            ("revisionHistoryLimit", D("10")),
            ("progressDeadlineSeconds", D("600")),
            (
                "strategy",
                D(
                    "{\"rollingUpdate\":{\"maxSurge\":\"25%\",\"maxUnavailable\":\"25%\"},\"type\":\"RollingUpdate\"}",
                ),
            ),
            ("selector", I),
        ],
    ),
    (
        "DeploymentStrategy",
        &[
            ("type", Z("\"RollingUpdate\"")),
            ("rollingUpdate", D("{\"maxSurge\":\"25%\",\"maxUnavailable\":\"25%\"}")),
        ],
    ),
    ("RollingUpdateDeployment", &[("maxSurge", D("\"25%\"")), ("maxUnavailable", D("\"25%\""))]),
    (
        "StatefulSetSpec",
        &[
            ("replicas", D("1")),
            ("revisionHistoryLimit", D("10")),
            ("podManagementPolicy", Z("\"OrderedReady\"")),
            (
                "updateStrategy",
                D("{\"rollingUpdate\":{\"partition\":0},\"type\":\"RollingUpdate\"}"),
            ),
            (
                "persistentVolumeClaimRetentionPolicy",
                D("{\"whenDeleted\":\"Retain\",\"whenScaled\":\"Retain\"}"),
            ),
            ("selector", I),
            ("serviceName", I),
            ("podManagementPolicy", I),
            ("volumeClaimTemplates", I),
        ],
    ),
    (
        "StatefulSetUpdateStrategy",
        &[("type", Z("\"RollingUpdate\"")), ("rollingUpdate", D("{\"partition\":0}"))],
    ),
    ("RollingUpdateStatefulSetStrategy", &[("partition", D("0")), ("maxUnavailable", D("1"))]),
    (
        "StatefulSetPersistentVolumeClaimRetentionPolicy",
        &[("whenDeleted", Z("\"Retain\"")), ("whenScaled", Z("\"Retain\""))],
    ),
    (
        "DaemonSetSpec",
        &[
            ("revisionHistoryLimit", D("10")),
            (
                "updateStrategy",
                D(
                    "{\"rollingUpdate\":{\"maxSurge\":0,\"maxUnavailable\":1},\"type\":\"RollingUpdate\"}",
                ),
            ),
            ("selector", I),
        ],
    ),
    (
        "DaemonSetUpdateStrategy",
        &[
            ("type", Z("\"RollingUpdate\"")),
            ("rollingUpdate", D("{\"maxSurge\":0,\"maxUnavailable\":1}")),
        ],
    ),
    ("RollingUpdateDaemonSet", &[("maxUnavailable", D("1")), ("maxSurge", D("0"))]),
    ("ReplicaSetSpec", &[("replicas", D("1")), ("selector", I)]),
    // batch
    (
        "JobSpec",
        &[
            ("completions", D("1")),
            ("parallelism", D("1")),
            ("backoffLimit", D("6")),
            ("completionMode", D("\"NonIndexed\"")),
            ("suspend", D("false")),
            ("manualSelector", D("false")),
            ("podReplacementPolicy", D("\"TerminatingOrFailed\"")),
            ("selector", S),
            ("selector", I),
            ("template", I),
            ("completionMode", I),
        ],
    ),
    (
        "CronJobSpec",
        &[
            ("concurrencyPolicy", Z("\"Allow\"")),
            ("suspend", D("false")),
            ("successfulJobsHistoryLimit", D("3")),
            ("failedJobsHistoryLimit", D("1")),
        ],
    ),
    ("PodFailurePolicyOnPodConditionsPattern", &[("status", Z("\"True\""))]),
    // autoscaling, policy
    (
        "HorizontalPodAutoscalerSpec",
        &[
            ("minReplicas", D("1")),
            ("metrics", M),
            ("metrics", Z(CPU_80)),
            ("targetCPUUtilizationPercentage", D("80")),
        ],
    ),
    ("HPAScalingRules", &[("selectPolicy", D("\"Max\""))]),
    ("HorizontalPodAutoscalerBehavior", &[("scaleUp", D(SCALE_UP)), ("scaleDown", D(SCALE_DOWN))]),
    // networking
    ("NetworkPolicyPort", &[("protocol", D("\"TCP\""))]),
    ("IngressClassParametersReference", &[("scope", D("\"Cluster\""))]),
    ("HTTPIngressPath", &[("pathType", D("\"ImplementationSpecific\""))]),
    // rbac
    ("RoleRef", &[("apiGroup", Z("\"rbac.authorization.k8s.io\""))]),
    ("RoleBinding", &[("roleRef", I)]),
    ("ClusterRoleBinding", &[("roleRef", I)]),
    // devices
    ("DeviceRequest", DEVICES),
    ("ExactDeviceRequest", DEVICES),
    ("DeviceSubRequest", DEVICES),
    // admission
    ("MutatingWebhook", WEBHOOK),
    ("ValidatingWebhook", WEBHOOK),
    ("RuleWithOperations", &[("scope", D("\"*\""))]),
    ("NamedRuleWithOperations", &[("scope", D("\"*\""))]),
    ("MatchResources", MATCH),
    ("ValidatingAdmissionPolicySpec", &[("failurePolicy", D("\"Fail\""))]),
    ("MutatingAdmissionPolicySpec", &[("failurePolicy", D("\"Fail\""))]),
    ("ServiceReference", &[("port", D("443"))]),
    ("WebhookClientConfig", &[("caBundle", S)]),
    ("APIServiceSpec", &[("caBundle", S)]),
    // apiextensions
    (
        "CustomResourceDefinitionSpec",
        &[("conversion", D("{\"strategy\":\"None\"}")), ("group", I), ("scope", I)],
    ),
    (
        "CustomResourceDefinitionNames",
        &[("singular", S), ("listKind", S), ("kind", I), ("plural", I)],
    ),
    ("CustomResourceConversion", &[("strategy", D("\"None\""))]),
    // storage, scheduling and the rest
    (
        "StorageClass",
        &[
            ("reclaimPolicy", D("\"Delete\"")),
            ("volumeBindingMode", D("\"Immediate\"")),
            ("provisioner", I),
            ("parameters", I),
            ("reclaimPolicy", I),
            ("volumeBindingMode", I),
        ],
    ),
    (
        "CSIDriverSpec",
        &[
            ("attachRequired", D("true")),
            ("podInfoOnMount", D("false")),
            ("storageCapacity", D("false")),
            ("fsGroupPolicy", D("\"ReadWriteOnceWithFSType\"")),
            ("requiresRepublish", D("false")),
            ("seLinuxMount", D("false")),
            ("preventPodSchedulingIfMissing", D("false")),
            ("volumeLifecycleModes", D("[\"Persistent\"]")),
        ],
    ),
    (
        "PriorityClass",
        &[
            ("preemptionPolicy", D("\"PreemptLowerPriority\"")),
            ("value", I),
            ("preemptionPolicy", I),
        ],
    ),
    ("IngressClassSpec", &[("controller", I)]),
    ("RuntimeClass", &[("handler", I)]),
    ("FlowSchemaSpec", &[("matchingPrecedence", Z("1000"))]),
    (
        "LimitedPriorityLevelConfiguration",
        &[("nominalConcurrencyShares", D("30")), ("lendablePercent", D("0"))],
    ),
    (
        "ExemptPriorityLevelConfiguration",
        &[("nominalConcurrencyShares", D("0")), ("lendablePercent", D("0"))],
    ),
    (
        "QueuingConfiguration",
        &[("queues", Z("64")), ("handSize", Z("8")), ("queueLengthLimit", Z("50"))],
    ),
];
