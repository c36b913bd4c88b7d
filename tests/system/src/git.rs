//! Repositories made by git itself, and a server of them whose line can be cut.

use anyhow::{Context as _, Result, bail, ensure};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// Whose commits count: the name in the file of allowed signers.
const SIGNER: &str = "ada@example.com";

/// A repository with a work tree, on the branch `main`, and a key that may sign in it.
pub struct Repository {
    folder: PathBuf,
    key: Option<PathBuf>,
}

impl Repository {
    /// An empty one in a folder that is not there yet.
    ///
    /// # Errors
    /// Git cannot be run, or refuses.
    pub fn new(folder: &Path) -> Result<Self> {
        std::fs::create_dir(folder)?;
        let repository = Self { folder: folder.to_owned(), key: None };
        repository.git(&["init", "--quiet", "--initial-branch", "main"])?;
        Ok(repository)
    }

    /// The same with a key of SSH beside it, and a file of allowed signers that has it.
    ///
    /// # Errors
    /// Git or ssh-keygen cannot be run, or refuses.
    pub fn signed(folder: &Path) -> Result<Self> {
        let mut repository = Self::new(folder)?;
        let key = folder.with_extension("key");
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", SIGNER, "-f"])
            .arg(&key)
            .output()
            .context("ssh-keygen cannot be run")?;
        ensure!(made.status.success(), "ssh-keygen: {}", String::from_utf8_lossy(&made.stderr));
        let public = std::fs::read_to_string(key.with_extension("key.pub"))?;
        std::fs::write(folder.with_extension("signers"), format!("{SIGNER} {public}"))?;
        repository.key = Some(key);
        Ok(repository)
    }

    /// Its work tree.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of allowed signers, of a [signed](Repository::signed) one.
    pub fn signers(&self) -> PathBuf {
        self.folder.with_extension("signers")
    }

    /// Runs Git in it, with no configuration of anybody's; what it prints.
    ///
    /// # Errors
    /// It cannot be run, or refuses.
    pub fn git(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new("git")
            .current_dir(&self.folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "gc.auto=0"])
            .args(arguments)
            .output()
            .context("git cannot be run")?;
        if !output.status.success() {
            bail!("git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Writes this file and commits it, unsigned; the commit's id.
    ///
    /// # Errors
    /// As [`Repository::git`].
    pub fn commit(&self, file: &str, text: &str) -> Result<String> {
        let path = self.folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
        std::fs::write(path, text)?;
        self.commit_all(file, false)
    }

    /// Commits the work tree as it stands; the commit's id.
    ///
    /// # Errors
    /// As [`Repository::git`]; a signature is asked for and there is no key.
    pub fn commit_all(&self, message: &str, sign: bool) -> Result<String> {
        self.git(&["add", "-A"])?;
        let commit = ["commit", "--quiet", "--allow-empty", "-m", message];
        if sign {
            let key = self.key.as_ref().context("the repository has no key")?;
            let key = format!("user.signingKey={}", key.display());
            let how = ["-c", "gpg.format=ssh", "-c", &key];
            self.git(&[&how[..], &commit, &["-S"]].concat())?;
        } else {
            self.git(&commit)?;
        }
        self.git(&["rev-parse", "HEAD"])
    }
}

/// How a [`GitServer`] answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// As git's own backend does.
    Open,
    /// It closes each connection at once.
    Away,
    /// It answers each request with status 500.
    Failing,
    /// It sends so many bytes of an answer that brings objects, and closes.
    Cut(usize),
}

/// Serves the repositories in a folder over HTTP, until this program ends.
pub struct GitServer {
    port: u16,
    line: Arc<Mutex<Line>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// One request that a [`GitServer`] answered.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Method and target.
    pub request: String,
    /// Bytes of the answer.
    pub bytes: usize,
}

impl GitServer {
    /// Begins to serve.
    ///
    /// # Errors
    /// No port can be had.
    pub fn of(folder: &Path) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let line = Arc::new(Mutex::new(Line::Open));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (root, how, log) = (folder.to_owned(), line.clone(), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (root, how, log) = (root.clone(), how.clone(), log.clone());
                std::thread::spawn(move || {
                    let how = *how.lock().unwrap_or_else(PoisonError::into_inner);
                    // Whoever asked may be gone: it was killed.
                    if let Ok(Some(asked)) = answer(&stream, &root, how) {
                        log.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
                    }
                });
            }
        });
        Ok(Self { port, line, asked })
    }

    /// The address of a repository in the folder.
    pub fn address(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// From the next connection on.
    pub fn set(&self, line: Line) {
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = line;
    }

    /// What was asked since the last time.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn answer(mut stream: &TcpStream, root: &Path, line: Line) -> Result<Option<Asked>> {
    if line == Line::Away {
        return Ok(None);
    }
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut words = first.split_whitespace();
    let (method, target) = (words.next().context("a method")?, words.next().context("a target")?);
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let header = |name: &str| {
        let found = headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let mut bytes = match line {
        Line::Failing => {
            b"HTTP/1.1 500 Failing\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
        }
        _ => backend(root, (method, target), header, body)?,
    };
    if let Line::Cut(at) = line
        && method == "POST"
    {
        bytes.truncate(at);
    }
    let asked = Asked { request: format!("{method} {target}"), bytes: bytes.len() };
    stream.write_all(&bytes)?;
    Ok(Some(asked))
}

/// Git's own backend, called as a web server calls it.
fn backend<'h>(
    root: &Path,
    (method, target): (&str, &str),
    header: impl Fn(&str) -> &'h str,
    body: Vec<u8>,
) -> Result<Vec<u8>> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut child = Command::new("git")
        .arg("http-backend")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_PROJECT_ROOT", root)
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("git cannot be run")?;
    let mut input = child.stdin.take().context("its input")?;
    let feed = std::thread::spawn(move || input.write_all(&body));
    let output = child.wait_with_output()?.stdout;
    // It may end before it has read everything.
    let _ = feed.join();
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").context("a head")?;
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let body = &output[end + 4..];
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let mut bytes = format!("HTTP/1.1 {status}\r\n").into_bytes();
    for line in head.lines().filter(|line| !line.starts_with("Status: ")) {
        bytes.extend_from_slice(line.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    let rest = format!("Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    bytes.extend_from_slice(rest.as_bytes());
    bytes.extend_from_slice(body);
    Ok(bytes)
}
