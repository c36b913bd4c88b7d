//! HTTP for Git by `ureq` and rustls: what gix's protocol asks of a client, and the rules that it
//! has none for.
//!
//! Redirects are followed by the first request alone, to the same host and port alone, and never
//! from TLS to plain text: credentials are for one host. Nothing is cached, no cookie is kept, and
//! answers that are none of Git's are not read further than their first words.

mod exchange;

use super::GitOptions;
use super::link::{Budget, Cause, Told, small_file};
use super::location::{Scheme, Url};
use base64::Engine as _;
use exchange::{Answer, Exchange, Headers, Pending, Question};
use gix_transport::client::blocking_io::Transport;
use gix_transport::client::blocking_io::http::{
    self, GetResponse, Http, PostBodyDataKind, PostResponse,
};
use std::io::{self, Read as _};
use std::path::Path;
use ureq::http::{Response, Uri, header};
use ureq::tls::{PemItem, RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Body};

/// A name and a password for HTTP's basic authentication.
pub(crate) struct Login {
    user: String,
    password: String,
}

impl Login {
    /// From `user:token`, or a token alone.
    pub(crate) fn parse(text: &str, user: Option<&str>, path: &Path) -> Result<Self, Cause> {
        let text = text.trim();
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(Cause::Options(format!(
                "{} holds no token: write a token, or user:token, on one line",
                path.display()
            )));
        }
        let (user, password) = match text.split_once(':') {
            Some((user, password)) => (user, password),
            // Whoever takes tokens as passwords takes any user with them; some want one.
            None => (user.unwrap_or("x-access-token"), text),
        };
        Ok(Self { user: user.into(), password: password.into() })
    }

    /// Every form in which the password could be repeated.
    pub(crate) fn secrets(&self) -> Vec<String> {
        vec![self.password.clone(), self.encoded()]
    }

    fn encoded(&self) -> String {
        let plain = format!("{}:{}", self.user, self.password);
        base64::engine::general_purpose::STANDARD.encode(plain)
    }
}

/// A conversation over HTTP. Nothing is sent yet.
///
/// # Errors
/// [`Cause::Options`] where the options contradict each other or a file is no use.
pub(crate) fn connect(
    options: &GitOptions,
    login: Option<Login>,
    budget: Budget,
    told: &Told,
) -> Result<Box<dyn Transport + Send>, Cause> {
    let url = &options.url;
    if url.scheme == Scheme::Http && !options.allow_plain_http {
        return Err(Cause::Options(
            "HTTP without TLS proves neither who answers nor what: use https://, or allow it by \
             name"
                .into(),
        ));
    }
    let base = url.http();
    let address = gix::url::parse(base.as_str())
        .map_err(|error| Cause::Options(format!("the address is no use: {error}")))?;
    let client = Client {
        agent: agent(options)?,
        login: login.map(|login| format!("Basic {}", login.encoded())),
        url: url.clone(),
        moved_to: None,
        budget,
        told: told.clone(),
    };
    let version = gix_transport::Protocol::V2;
    Ok(Box::new(http::Transport::new_http(client, address, version, false)))
}

fn agent(options: &GitOptions) -> Result<Agent, Cause> {
    let roots = match &options.ca_file {
        Some(path) => authorities(path)?,
        None => RootCerts::WebPki,
    };
    let tls = TlsConfig::builder().provider(TlsProvider::Rustls).root_certs(roots).build();
    let mut config = Agent::config_builder()
        .tls_config(tls)
        .max_redirects(0)
        .http_status_as_error(false)
        .timeout_global(Some(options.timeout))
        .user_agent(concat!("git/2 trimtab/", env!("CARGO_PKG_VERSION")))
        .max_idle_connections(1);
    if options.url.is_loopback() {
        config = config.proxy(None);
    }
    Ok(Agent::new_with_config(config.build()))
}

fn authorities(path: &Path) -> Result<RootCerts, Cause> {
    let text = small_file(path, "the certificates")?;
    let mut found = Vec::new();
    for item in ureq::tls::parse_pem(text.as_bytes()) {
        match item {
            Ok(PemItem::Certificate(certificate)) => found.push(certificate),
            Ok(_) => {}
            Err(error) => {
                return Err(Cause::Options(format!("{} is no PEM: {error}", path.display())));
            }
        }
    }
    if found.is_empty() {
        return Err(Cause::Options(format!("{} holds no certificate", path.display())));
    }
    Ok(RootCerts::new_with_certs(&found))
}

struct Client {
    agent: Agent,
    login: Option<String>,
    url: Url,
    /// Where the repository is by the server's word.
    moved_to: Option<String>,
    budget: Budget,
    told: Told,
}

impl Client {
    /// Tells a cause, and gives it as the error that gix passes on.
    fn fail(&self, cause: Cause) -> gix::Error {
        let words = self.told.shown(cause.words());
        self.told.tell(cause);
        gix::error::message!("{words}").into()
    }

    fn reached(
        &self,
        answer: Result<Response<Body>, ureq::Error>,
    ) -> Result<Response<Body>, gix::Error> {
        answer.map_err(|error| self.fail(Cause::Other(words_of(&error))))
    }

    /// Where the repository has moved to, if the server may say so.
    fn redirect(&self, answer: &Response<Body>, asked: &str, base: &str) -> Result<String, Cause> {
        let refuse = |why: &str| {
            Err(Cause::Other(format!(
                "the server sends us elsewhere ({}), {why}: correct the source's address",
                answer.status()
            )))
        };
        let target = answer.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
        let Some(target) = target else { return refuse("and does not say where") };
        let scheme = if self.url.scheme == Scheme::Https { "https" } else { "http" };
        let target = match target.strip_prefix('/') {
            Some(path) if !path.starts_with('/') => {
                format!("{scheme}://{}/{path}", self.url.authority)
            }
            _ => target.to_owned(),
        };
        let Ok(uri) = target.parse::<Uri>() else { return refuse("to no address") };
        let authority = uri.authority().map(|authority| authority.as_str().to_ascii_lowercase());
        if uri.scheme_str() != Some(scheme) {
            return refuse("by another protocol");
        }
        if authority.as_deref() != Some(self.url.authority.as_str()) {
            return refuse("to another host, which gets no credentials");
        }
        let tail = asked.strip_prefix(base).unwrap_or(asked);
        match target.strip_suffix(tail) {
            Some(moved) => Ok(moved.to_owned()),
            None => refuse("to what is no repository"),
        }
    }
}

/// Headers by which gix would override ours.
fn is_ours(name: &str) -> bool {
    name.eq_ignore_ascii_case("user-agent") || name.eq_ignore_ascii_case("authorization")
}

fn split(headers: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<(String, String)> {
    headers
        .into_iter()
        .filter_map(|line| {
            let (name, value) = line.as_ref().split_once(':')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        })
        .filter(|(name, _)| !is_ours(name))
        .collect()
}

impl Http for Client {
    type Headers = Headers;
    type ResponseBody = Answer;
    type PostBody = Question;

    fn get(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<GetResponse<Headers, Answer>, gix::Error> {
        let headers = split(headers);
        let ask = |url: &str| {
            let mut request = self.agent.get(url);
            for (name, value) in &headers {
                request = request.header(name, value);
            }
            if let Some(login) = &self.login {
                request = request.header(header::AUTHORIZATION, login);
            }
            request.call()
        };
        let mut answer = self.reached(ask(url))?;
        if answer.status().is_redirection() {
            let moved = self.redirect(&answer, url, base_url).map_err(|cause| self.fail(cause))?;
            answer = self.reached(ask(&format!(
                "{moved}{}",
                url.strip_prefix(base_url).unwrap_or_default()
            )))?;
            self.moved_to = Some(moved);
        }
        if let Some(cause) = refusal(&mut answer) {
            return Err(self.fail(cause));
        }
        let exchange = Exchange::answered(answer, &self.budget);
        let (headers, body) = exchange.halves();
        Ok(GetResponse { headers, body })
    }

    fn post(
        &mut self,
        url: &str,
        _base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
        _body: PostBodyDataKind,
    ) -> Result<PostResponse<Headers, Answer, Question>, gix::Error> {
        let mut headers = split(headers);
        headers.extend(self.login.clone().map(|login| ("Authorization".to_owned(), login)));
        let exchange = Exchange::asking(Pending {
            agent: self.agent.clone(),
            url: url.to_owned(),
            headers,
            question: Vec::new(),
            budget: self.budget.clone(),
            told: self.told.clone(),
        });
        let post_body = Question(exchange.0.clone());
        let (headers, body) = exchange.halves();
        Ok(PostResponse { post_body, headers, body })
    }

    fn configure(&mut self, _config: &dyn std::any::Any) -> Result<(), gix::Error> {
        Ok(())
    }

    fn redirected_base_url(&self) -> Option<String> {
        self.moved_to.clone()
    }
}

/// Why an answer is no use, by its status.
fn refusal(answer: &mut Response<Body>) -> Option<Cause> {
    let status = answer.status();
    if status.is_success() {
        return None;
    }
    let is_text = answer
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|kind| kind.starts_with("text/plain"));
    let mut words = Vec::new();
    if is_text {
        let _ = answer.body_mut().as_reader().take(512).read_to_end(&mut words);
    }
    let mut told = format!("the server answers {status}");
    if !words.is_empty() {
        told = format!("{told} and says: {}", String::from_utf8_lossy(&words));
    }
    Some(match status.as_u16() {
        401 | 403 => Cause::Refused(told),
        404 | 410 => Cause::Other(format!(
            "{told}; either there is no such repository, or these credentials may not see it"
        )),
        _ => Cause::Other(told),
    })
}

fn words_of(error: &ureq::Error) -> String {
    match error {
        ureq::Error::HostNotFound => "there is no such host".into(),
        ureq::Error::Timeout(_) => "the server did not answer in time".into(),
        ureq::Error::Io(error) => io_words(error),
        other => other.to_string(),
    }
}

fn io_words(error: &io::Error) -> String {
    // The system's own words end with a number that helps nobody.
    let words = error.to_string();
    words.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
