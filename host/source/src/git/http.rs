//! HTTP for Git by `ureq` and rustls: what gix's protocol asks of a client, and the rules that it
//! has none for.
//!
//! Redirects are followed by the first request alone, to the same host and port alone, and never
//! from TLS to plain text: credentials are for one host. Nothing is cached, no cookie is kept, and
//! answers that are none of Git's are not read further than their first words.

use super::GitOptions;
use super::link::{Bounded, Budget, Cause, Told, size, small_file};
use super::location::{Scheme, Url};
use crate::limits::MAX_REQUEST_BYTES;
use base64::Engine as _;
use gix_transport::client::blocking_io::Transport;
use gix_transport::client::blocking_io::http::{
    self, GetResponse, Http, PostBodyDataKind, PostResponse,
};
use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// A request and its answer: the request is sent when the answer is first looked at, since only
/// then its body is whole.
struct Exchange(Arc<Mutex<State>>);

enum State {
    Asking(Box<Pending>),
    Answered { headers: Option<Vec<u8>>, body: Option<BufReader<Bounded<Box<dyn Read + Send>>>> },
    Failed,
}

struct Pending {
    agent: Agent,
    url: String,
    headers: Vec<(String, String)>,
    question: Vec<u8>,
    budget: Budget,
    told: Told,
}

impl Exchange {
    fn asking(pending: Pending) -> Self {
        Self(Arc::new(Mutex::new(State::Asking(Box::new(pending)))))
    }

    fn answered(answer: Response<Body>, budget: &Budget) -> Self {
        Self(Arc::new(Mutex::new(State::of(answer, budget))))
    }

    fn halves(self) -> (Headers, Answer) {
        (Headers { state: self.0.clone(), text: None }, Answer { state: self.0, body: None })
    }
}

impl State {
    fn of(answer: Response<Body>, budget: &Budget) -> Self {
        let (parts, body) = answer.into_parts();
        let mut headers = Vec::new();
        for (name, value) in &parts.headers {
            headers.extend_from_slice(name.as_str().as_bytes());
            headers.extend_from_slice(b": ");
            headers.extend_from_slice(value.as_bytes());
            headers.push(b'\n');
        }
        // The conversation's own limit counts, over all of its answers.
        let body: Box<dyn Read + Send> = Box::new(body.into_with_config().limit(u64::MAX).reader());
        let body = BufReader::new(budget.bounds(body));
        State::Answered { headers: Some(headers), body: Some(body) }
    }

    /// Sends the request if it has not been.
    fn answer(&mut self) -> io::Result<()> {
        let pending = match std::mem::replace(self, State::Failed) {
            State::Asking(pending) => pending,
            State::Failed => return Err(io::Error::other("the request has failed before")),
            answered => {
                *self = answered;
                return Ok(());
            }
        };
        let mut request = pending.agent.post(&pending.url);
        for (name, value) in &pending.headers {
            request = request.header(name, value);
        }
        let fail = |cause: Cause| {
            let words = pending.told.shown(cause.words());
            pending.told.tell(cause);
            io::Error::other(words)
        };
        let mut answer = request
            .send(pending.question.as_slice())
            .map_err(|error| fail(Cause::Other(words_of(&error))))?;
        if answer.status().is_redirection() {
            let status = answer.status();
            return Err(fail(Cause::Other(format!("the server sends a request on ({status})"))));
        }
        if let Some(cause) = refusal(&mut answer) {
            return Err(fail(cause));
        }
        *self = State::of(answer, &pending.budget);
        Ok(())
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is sent.
pub(crate) struct Question(Arc<Mutex<State>>);

impl Write for Question {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = lock(&self.0);
        let State::Asking(pending) = &mut *state else {
            return Err(io::Error::other("the request has been sent"));
        };
        if pending.question.len() + bytes.len() > MAX_REQUEST_BYTES {
            let what = format!("a request would be larger than {}", size(MAX_REQUEST_BYTES as u64));
            return Err(io::Error::other(what));
        }
        pending.question.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The headers of an answer, a line each.
pub(crate) struct Headers {
    state: Arc<Mutex<State>>,
    text: Option<Cursor<Vec<u8>>>,
}

impl Headers {
    fn text(&mut self) -> io::Result<&mut Cursor<Vec<u8>>> {
        if self.text.is_none() {
            let mut state = lock(&self.state);
            state.answer()?;
            let State::Answered { headers, .. } = &mut *state else {
                return Err(io::Error::other("there is no answer"));
            };
            self.text = Some(Cursor::new(headers.take().unwrap_or_default()));
        }
        self.text.as_mut().ok_or_else(|| io::Error::other("there is no answer"))
    }
}

impl Read for Headers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.text()?.read(buffer)
    }
}

impl BufRead for Headers {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.text()?.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        if let Some(text) = &mut self.text {
            text.consume(amount);
        }
    }
}

/// The body of an answer.
pub(crate) struct Answer {
    state: Arc<Mutex<State>>,
    body: Option<BufReader<Bounded<Box<dyn Read + Send>>>>,
}

impl Answer {
    fn body(&mut self) -> io::Result<&mut BufReader<Bounded<Box<dyn Read + Send>>>> {
        if self.body.is_none() {
            let mut state = lock(&self.state);
            state.answer()?;
            if let State::Answered { body, .. } = &mut *state {
                self.body = body.take();
            }
        }
        self.body.as_mut().ok_or_else(|| io::Error::other("there is no answer"))
    }
}

impl Read for Answer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.body()?.read(buffer)
    }
}

impl BufRead for Answer {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.body()?.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        if let Some(body) = &mut self.body {
            body.consume(amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::GitOptions;

    /// Where a client of this address goes when it is sent there.
    fn sent(address: &str, to: &str) -> Result<String, String> {
        let options = GitOptions::new(Url::parse(address).unwrap());
        let told = Told::default();
        let client = Client {
            agent: agent(&options).unwrap(),
            login: None,
            url: options.url.clone(),
            moved_to: None,
            budget: Budget::new(&options),
            told,
        };
        let base = options.url.http();
        let asked = format!("{base}/info/refs?service=git-upload-pack");
        let answer = Response::builder()
            .status(302)
            .header("Location", to)
            .body(Body::builder().data(""))
            .unwrap();
        client.redirect(&answer, &asked, &base).map_err(|cause| cause.words().to_owned())
    }

    #[test]
    fn a_server_may_send_us_on_within_its_own_host_and_never_out_of_tls() {
        let tail = "/info/refs?service=git-upload-pack";
        let from = "https://user@git.test:8443/pier";
        for to in [format!("https://git.test:8443/new{tail}"), format!("/new{tail}")] {
            assert_eq!(sent(from, &to).as_deref(), Ok("https://git.test:8443/new"), "{to}");
        }
        for (to, word) in [
            (format!("http://git.test:8443/new{tail}"), "another protocol"),
            (format!("https://git.test/new{tail}"), "another host"),
            (format!("https://git.test:8443.evil.test/new{tail}"), "another host"),
            (format!("https://user@git.test:8443/new{tail}"), "another host"),
            (format!("https://evil.test/pier{tail}"), "another host"),
            (format!("//evil.test/pier{tail}"), "elsewhere"),
            ("/login".to_owned(), "no repository"),
            ("/pier/info/refs".to_owned(), "no repository"),
        ] {
            let told = sent(from, &to).unwrap_err();
            assert!(told.contains(word), "{to}: {told}");
        }
    }
}
