//! A mutating admission webhook, as clusters have them: a small HTTPS server on this machine.

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::server::TlsStream;

/// A running webhook; it ends with the runtime that it was started in.
pub struct Webhook {
    url: String,
    ca_pem: String,
}

struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl axum::serve::Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            if let Ok((stream, from)) = self.listener.accept().await
                && let Ok(stream) = self.acceptor.accept(stream).await
            {
                return (stream, from);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

impl Webhook {
    /// Starts one. It is given each admission request (`object`, `dryRun`, `operation`…) and
    /// answers with operations of a JSON Patch.
    ///
    /// # Errors
    /// No certificate or no port is to be had.
    pub async fn start(
        answer: impl Fn(&Value) -> Vec<Value> + Send + Sync + 'static,
    ) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())
            .map_err(|error| anyhow::anyhow!("{error}"))?;
        let tls = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("https://127.0.0.1:{}/", listener.local_addr()?.port());
        let answer = Arc::new(answer);
        let route = post(move |body: Bytes| {
            let answer = answer.clone();
            async move { reply(&body, &*answer).unwrap_or_default() }
        });
        let server = axum::serve(
            Tls { listener, acceptor: TlsAcceptor::from(Arc::new(tls)) },
            Router::new().route("/", route),
        );
        tokio::spawn(async move { server.await });
        Ok(Self { url, ca_pem: made.cert.pem() })
    }

    /// The configuration that calls it for updates of these resources of the core group, in one
    /// namespace.
    pub fn configuration(&self, name: &str, namespace: &str, resources: &[&str]) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": format!("{name}.example.com"),
                "admissionReviewVersions": ["v1"],
                "sideEffects": "NoneOnDryRun",
                "timeoutSeconds": 5,
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"],
                    "resources": resources}],
                "clientConfig": {"url": self.url,
                    "caBundle": trimtab_compare::encode_base64(self.ca_pem.as_bytes())},
            }],
        })
    }
}

fn reply(body: &[u8], answer: &impl Fn(&Value) -> Vec<Value>) -> Result<Vec<u8>> {
    let review: Value = serde_json::from_slice(body).context("no admission review")?;
    let patch = serde_json::to_vec(&answer(&review["request"]))?;
    Ok(serde_json::to_vec(&json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": review["request"]["uid"],
            "allowed": true,
            "patchType": "JSONPatch",
            "patch": trimtab_compare::encode_base64(&patch),
        },
    }))?)
}
