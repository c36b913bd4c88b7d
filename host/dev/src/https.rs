//! A very small HTTPS client for one API server: enough to ask whether it is ready, and for a
//! test to create and read an object.
//!
//! Takes: the port, the authority to trust (ours alone) and who to be. Gives: status and body.
//! It never follows a redirect, keeps a connection, watches or retries: for that there is kube.
//!
//! It speaks HTTP/1.0, so that the server neither splits the body into chunks nor keeps the
//! connection open: the body is what comes until the end.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::Error;
use crate::certs::Identity;

/// For one whole request. An API server on this machine answers in milliseconds; one that is
/// starting may let a request wait.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Speaks to one API server on 127.0.0.1, as one user.
#[derive(Clone)]
pub struct Client {
    port: u16,
    tls: TlsConnector,
}

/// What the API server answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// The HTTP status, such as 200.
    pub status: u16,
    /// The body; for most paths JSON.
    pub body: String,
}

impl Client {
    /// With no identity it is the anonymous user.
    pub(crate) fn new(
        port: u16,
        authority: CertificateDer<'static>,
        identity: Option<&Identity>,
    ) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        roots.add(authority)?;
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let config = match identity {
            Some(who) => {
                config.with_client_auth_cert(vec![who.cert.clone()], who.key.clone_key())?
            }
            None => config.with_no_client_auth(),
        };
        Ok(Self { port, tls: TlsConnector::from(Arc::new(config)) })
    }

    /// `GET path`, where `path` begins with `/` and may have a query.
    ///
    /// # Errors
    /// [`Error::Request`] when there is no whole answer within ten seconds. A refusal by the API
    /// server is an [`Answer`].
    pub async fn get(&self, path: &str) -> Result<Answer, Error> {
        self.send("GET", path, None).await
    }

    /// Any method, with a body of JSON (`POST`, `PUT`) or of YAML for server-side apply (`PATCH`).
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
    ) -> Result<Answer, Error> {
        let failed = |reason: String| Error::Request {
            method: method.to_owned(),
            url: format!("https://127.0.0.1:{}{path}", self.port),
            reason,
        };
        let exchange = timeout(REQUEST_TIMEOUT, self.exchange(method, path, body)).await;
        let bytes = exchange
            .map_err(|_| failed(format!("no answer within {} s", REQUEST_TIMEOUT.as_secs())))?
            .map_err(|error| failed(error.to_string()))?;
        parse(&bytes).ok_or_else(|| failed("the answer is not whole".to_owned()))
    }

    async fn exchange(&self, method: &str, path: &str, body: Option<&str>) -> io::Result<Vec<u8>> {
        let content =
            if method == "PATCH" { "application/apply-patch+yaml" } else { "application/json" };
        let body = body.unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\
             User-Agent: trimtab-dev\r\nContent-Type: {content}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len(),
        );
        let address = Ipv4Addr::LOCALHOST;
        let stream = TcpStream::connect((address, self.port)).await?;
        let name = ServerName::IpAddress(IpAddr::V4(address).into());
        let mut stream = self.tls.connect(name, stream).await?;
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        // rustls reports an end without the closing message as an error: nothing is cut off unseen.
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(answer)
    }
}

fn parse(answer: &[u8]) -> Option<Answer> {
    let text = std::str::from_utf8(answer).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_and_half_of_one_is_not() {
        let whole = b"HTTP/1.0 403 Forbidden\r\nContent-Type: text/plain\r\n\r\nno\r\n\r\nreally";
        let answer = parse(whole).unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (403, "no\r\n\r\nreally"));
        assert_eq!(parse(&whole[..30]), None);
    }
}
