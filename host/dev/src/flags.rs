//! The flags of each component, and why each one is there. Changes with Kubernetes' releases.
//!
//! Paths are relative: every component runs in the control plane's folder. That also keeps etcd's
//! Unix socket within the 104 bytes that a socket's path may have, wherever that folder is.

use crate::certs::{ACCOUNTS_PRIVATE, ACCOUNTS_PUBLIC, CA_CERT, SERVER_CERT, SERVER_KEY};

/// How much kube-apiserver writes into the audit log for each request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AuditLevel {
    /// Who did what to which object, and how it ended.
    Metadata,
    /// Also the bodies, both ways. Secrets included: for tests on made-up data.
    RequestResponse,
}

/// Files and folders inside the control plane's folder.
pub(crate) const ETCD_DATA: &str = "etcd";
pub(crate) const ETCD_SOCKET: &str = "etcd.sock";
const ETCD_PEER_SOCKET: &str = "etcd-peer.sock";
pub(crate) const PKI: &str = "pki";
pub(crate) const KUBECONFIG: &str = "kubeconfig";
pub(crate) const AUDIT_LOG: &str = "audit.log";
pub(crate) const AUDIT_POLICY: &str = "audit-policy.yaml";

pub(crate) fn etcd() -> Vec<String> {
    // Unix sockets in a folder that only its owner can enter: etcd asks nobody who they are, and
    // on a loopback port every user of this machine could go round the API server.
    let clients = format!("unix://{ETCD_SOCKET}");
    let peers = format!("unix://{ETCD_PEER_SOCKET}");
    vec![
        format!("--data-dir={ETCD_DATA}"),
        "--name=default".into(),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=default={peers}"),
        // Data need not survive a power cut; a start in two seconds is worth more here.
        "--unsafe-no-fsync".into(),
        "--log-level=warn".into(),
    ]
}

/// `extra` comes last: for a flag that is given twice, the last one counts.
pub(crate) fn kube_apiserver(
    port: u16,
    audit: Option<AuditLevel>,
    extra: &[String],
) -> Vec<String> {
    let mut flags = vec![
        format!("--etcd-servers=unix://{ETCD_SOCKET}"),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".into(),
        "--advertise-address=127.0.0.1".into(),
        // Nothing runs inside this cluster that would look for its API server, and endpoints may
        // not be loopback addresses.
        "--endpoint-reconciler-type=none".into(),
        format!("--cert-dir={PKI}"),
        format!("--tls-cert-file={PKI}/{SERVER_CERT}"),
        format!("--tls-private-key-file={PKI}/{SERVER_KEY}"),
        format!("--client-ca-file={PKI}/{CA_CERT}"),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
        format!("--service-account-signing-key-file={PKI}/{ACCOUNTS_PRIVATE}"),
        format!("--service-account-key-file={PKI}/{ACCOUNTS_PUBLIC}"),
        "--authorization-mode=RBAC".into(),
        "--service-cluster-ip-range=10.0.0.0/24".into(),
        // What clusters that run storage or network agents have; pod security is policy's matter.
        "--allow-privileged=true".into(),
    ];
    if audit.is_some() {
        flags.push(format!("--audit-policy-file={AUDIT_POLICY}"));
        flags.push(format!("--audit-log-path={AUDIT_LOG}"));
        // One file however long it gets: rotation would hide requests from who reads it.
        flags.push("--audit-log-maxsize=100000".into());
    }
    flags.extend_from_slice(extra);
    flags
}

pub(crate) fn kube_controller_manager() -> Vec<String> {
    vec![
        format!("--kubeconfig={KUBECONFIG}"),
        format!("--root-ca-file={PKI}/{CA_CERT}"),
        format!("--service-account-private-key-file={PKI}/{ACCOUNTS_PRIVATE}"),
        // The only one, so there is nobody to elect and nothing to wait for.
        "--leader-elect=false".into(),
        // Nobody scrapes it: no second port.
        "--secure-port=0".into(),
    ]
}

/// One record for each request, when it has ended.
pub(crate) fn audit_policy(level: AuditLevel) -> String {
    format!(
        "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: {level:?}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_flags_come_last_so_that_they_count() {
        let extra = ["--allow-privileged=false".to_owned()];
        let flags = kube_apiserver(6443, Some(AuditLevel::Metadata), &extra);
        assert_eq!(flags.last(), extra.last());
    }

    #[test]
    fn the_levels_are_called_what_kubernetes_calls_them() {
        assert!(audit_policy(AuditLevel::Metadata).contains("- level: Metadata\n"));
        assert!(audit_policy(AuditLevel::RequestResponse).contains("- level: RequestResponse\n"));
    }
}
