//! The kubeconfig of one control plane: plain text in, plain text out.
//!
//! Everything is embedded, so the one file is enough; it holds an administrator's key and is
//! written for its owner alone.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::certs::Pki;

/// The name of the context, and of its cluster and user.
pub(crate) const CONTEXT: &str = "trimtab-dev";

/// YAML that kubectl, kube-rs and client-go read.
pub(crate) fn kubeconfig(server: &str, pki: &Pki) -> String {
    let ca = STANDARD.encode(&pki.ca_pem);
    let cert = STANDARD.encode(&pki.admin.cert_pem);
    let key = STANDARD.encode(&pki.admin.key_pem);
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: {CONTEXT}
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: {CONTEXT}
  user:
    client-certificate-data: {cert}
    client-key-data: {key}
contexts:
- name: {CONTEXT}
  context:
    cluster: {CONTEXT}
    user: {CONTEXT}
current-context: {CONTEXT}
"
    )
}
