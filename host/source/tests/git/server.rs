//! A server of HTTP for tests: git's own backend behind it, and every way to misbehave.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// How the server behaves.
#[derive(Clone, Debug)]
pub(super) enum Manner {
    /// As git's backend has it.
    Serve,
    /// As git's backend has it, for whoever shows this (`user:password` in base64).
    Ask(&'static str),
    /// Answers with a status, headers and words.
    Say(u16, &'static str, &'static str),
    /// Sends every request on, path and query included, to what stands before them.
    Move(String),
    /// Serves, and closes an answer to a POST after so many bytes.
    Cut(usize),
    /// Sends without end.
    Endless,
    /// Takes the request and says nothing.
    Silent,
}

/// What was asked.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) line: String,
    pub(super) authorization: Option<String>,
    /// Bytes of the answer.
    pub(super) sent: usize,
    pub(super) body: Vec<u8>,
}

pub(super) struct Server {
    port: u16,
    /// What a client must trust, where the server speaks TLS.
    certificate: Option<String>,
    manner: Arc<Mutex<Manner>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Serves the repositories in a folder, until the test ends.
    pub(super) fn of(folder: &Path) -> Self {
        Self::start(folder, None, None)
    }

    /// The same over TLS, with a certificate of its own.
    pub(super) fn over_tls(folder: &Path) -> Self {
        let names = vec!["127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        Self::start(folder, Some(Arc::new(config)), Some(made.cert.pem()))
    }

    fn start(folder: &Path, tls: Option<Arc<ServerConfig>>, certificate: Option<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let manner = Arc::new(Mutex::new(Manner::Serve));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (root, how, log) = (folder.to_owned(), manner.clone(), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (root, how, log) = (root.clone(), how.clone(), log.clone());
                let tls = tls.clone();
                std::thread::spawn(move || match tls {
                    None => answer(stream, root, &how, &log),
                    Some(config) => {
                        let session = ServerConnection::new(config).unwrap();
                        answer(StreamOwned::new(session, stream), root, &how, &log);
                    }
                });
            }
        });
        Self { port, certificate, manner, asked }
    }

    pub(super) fn address(&self, path: &str) -> String {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}/{path}", self.port)
    }

    /// The certificate in PEM.
    pub(super) fn certificate(&self) -> &str {
        self.certificate.as_deref().unwrap()
    }

    pub(super) fn set(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }

    /// What was asked since the last time.
    pub(super) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        let is_it = |(known, _): &&(String, String)| known.eq_ignore_ascii_case(name);
        self.headers.iter().find(is_it).map(|(_, value)| value.as_str())
    }
}

fn request(stream: &mut impl Read) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut request = Request { method, target, headers, body: Vec::new() };
    let length = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    request.body = vec![0; length];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

fn answer(
    mut stream: impl Read + Write,
    root: PathBuf,
    how: &Mutex<Manner>,
    log: &Mutex<Vec<Asked>>,
) {
    let Some(request) = request(&mut stream) else { return };
    let manner = how.lock().unwrap().clone();
    let log_it = |sent| {
        log.lock().unwrap().push(Asked {
            line: format!("{} {}", request.method, request.target),
            authorization: request.header("authorization").map(str::to_owned),
            sent,
            body: request.body.clone(),
        });
    };
    let plain = |status: u16, headers: &str, words: &str| {
        let length = words.len();
        format!(
            "HTTP/1.1 {status} Said\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{words}"
        )
        .into_bytes()
    };
    let bytes = match manner {
        Manner::Silent => {
            log_it(0);
            std::thread::sleep(std::time::Duration::from_secs(30));
            return;
        }
        Manner::Endless => {
            log_it(0);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\nConnection: close\r\n\r\n001e# service=git-upload-pack\n0000";
            let _ = stream.write_all(head.as_bytes());
            // Lines of the protocol, each a reference of its own.
            for number in 0_u64.. {
                let abilities = if number == 0 { "\0agent=endless" } else { "" };
                let line = format!("{:040x} refs/heads/b{number:020}{abilities}\n", number + 1);
                if write!(stream, "{:04x}{line}", line.len() + 4).is_err() {
                    return;
                }
            }
            return;
        }
        Manner::Say(status, headers, words) => plain(status, headers, words),
        Manner::Move(to) => plain(302, &format!("Location: {to}{}\r\n", request.target), ""),
        Manner::Ask(login)
            if request.header("authorization") != Some(&format!("Basic {login}")) =>
        {
            plain(401, "WWW-Authenticate: Basic\r\nContent-Type: text/plain\r\n", "who are you?")
        }
        Manner::Ask(_) | Manner::Serve => backend(&root, &request),
        Manner::Cut(bytes) => {
            let mut whole = backend(&root, &request);
            if request.method == "POST" {
                whole.truncate(bytes);
            }
            whole
        }
    };
    log_it(bytes.len());
    let _ = stream.write_all(&bytes);
}

/// Git's own backend, called as a web server calls it.
fn backend(root: &Path, request: &Request) -> Vec<u8> {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let mut command = Command::new("git");
    command.arg("http-backend").env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    for (name, value) in [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_HTTP_EXPORT_ALL", "1"),
        ("GIT_PROJECT_ROOT", root.to_str().unwrap()),
        ("REQUEST_METHOD", &request.method),
        ("PATH_INFO", path),
        ("QUERY_STRING", query),
        ("CONTENT_TYPE", request.header("content-type").unwrap_or_default()),
        ("CONTENT_LENGTH", &request.body.len().to_string()),
        ("HTTP_CONTENT_ENCODING", request.header("content-encoding").unwrap_or_default()),
        ("GIT_PROTOCOL", request.header("git-protocol").unwrap_or_default()),
    ] {
        command.env(name, value);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let body = request.body.clone();
    let feed = std::thread::spawn(move || input.write_all(&body));
    let output = child.wait_with_output().unwrap().stdout;
    let _ = feed.join();
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let body = &output[end + 4..];
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let mut answer = format!("HTTP/1.1 {status}\r\n");
    for line in head.lines().filter(|line| !line.starts_with("Status: ")) {
        answer.push_str(line);
        answer.push_str("\r\n");
    }
    answer.push_str(&format!("Content-Length: {}\r\nConnection: close\r\n\r\n", body.len()));
    let mut bytes = answer.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}
