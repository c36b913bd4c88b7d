//! Between a client and the API server: plain HTTP on one side, TLS on the other, and a clock.
//!
//! Both controllers go through one each, so that both are measured in the same way: the time at
//! which a watch frame had been handed to the client's socket, and the time at which the first
//! byte of a write came back from it. Nothing is changed on the way. HTTP/1.1 as kube's client
//! speaks it: one request after the other on a connection, no pipelining.

use anyhow::{Context as _, Result};
use kube::Config;
use kube::client::ConfigExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// A read takes at most this: a watch frame of ours fits.
const BUFFER: usize = 64 << 10;

/// What went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// A watch frame that has the marker of this edit is with the client.
    Frame(u64),
    /// The first byte of a write is here; `true`: a dry run.
    Write(bool),
    /// A part of the answer to a write is with the client.
    Answer,
}

/// A running proxy. Ends with its runtime.
#[derive(Clone)]
pub(crate) struct Proxy {
    port: u16,
    log: Arc<Mutex<Vec<(Instant, Passed)>>>,
    marker: &'static str,
}

impl Proxy {
    /// In front of the server of this kubeconfig, with its credentials. Frames are recognised by
    /// `marker` and a number behind it.
    pub(crate) async fn start(kubeconfig: &Path, marker: &'static str) -> Result<Self> {
        let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
        let config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let upstream = config.cluster_url.port_u16().context("the server's port")?;
        let tls = TlsConnector::from(Arc::new(config.rustls_client_config()?));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let proxy = Self { port, log: Arc::default(), marker };
        let served = proxy.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (proxy, tls) = (served.clone(), tls.clone());
                tokio::spawn(async move {
                    // Either side closes whenever it likes; the other is closed with it.
                    let _ = proxy.carry(client, upstream, tls).await;
                });
            }
        });
        Ok(proxy)
    }

    /// A kubeconfig that leads here.
    pub(crate) fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: bench\n  cluster:\n    server: http://127.0.0.1:{}\nusers:\n- name: bench\n  user: {{}}\ncontexts:\n- name: bench\n  context:\n    cluster: bench\n    user: bench\ncurrent-context: bench\n",
            self.port
        )
    }

    /// What went through since `mark`.
    pub(crate) fn since(&self, mark: usize) -> Vec<(Instant, Passed)> {
        self.log().get(mark..).unwrap_or_default().to_vec()
    }

    /// How much went through so far.
    pub(crate) fn mark(&self) -> usize {
        self.log().len()
    }

    fn log(&self) -> std::sync::MutexGuard<'_, Vec<(Instant, Passed)>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn carry(&self, client: TcpStream, upstream: u16, tls: TlsConnector) -> Result<()> {
        client.set_nodelay(true)?;
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, upstream)).await?;
        server.set_nodelay(true)?;
        let server = tls.connect(ServerName::try_from("127.0.0.1")?, server).await?;
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = tokio::io::split(server);
        let on_its_way = Mutex::new(Request::Other);
        let there = async {
            let mut buffer = vec![0; BUFFER];
            loop {
                let length = from_client.read(&mut buffer).await?;
                let at = Instant::now();
                if length == 0 {
                    return to_server.shutdown().await;
                }
                let bytes = &buffer[..length];
                if let Some(request) = Request::begins(bytes) {
                    *on_its_way.lock().unwrap_or_else(PoisonError::into_inner) = request;
                    if let Request::Write { dry } = request {
                        self.log().push((at, Passed::Write(dry)));
                    }
                }
                to_server.write_all(bytes).await?;
                to_server.flush().await?;
            }
        };
        let back = async {
            let (mut buffer, mut frame) = (vec![0; BUFFER], Vec::new());
            loop {
                let length = from_server.read(&mut buffer).await?;
                if length == 0 {
                    return to_client.shutdown().await;
                }
                let bytes = &buffer[..length];
                to_client.write_all(bytes).await?;
                let at = Instant::now();
                let request = *on_its_way.lock().unwrap_or_else(PoisonError::into_inner);
                match request {
                    Request::Other => {}
                    Request::Write { .. } => self.log().push((at, Passed::Answer)),
                    Request::Watch => {
                        frame.extend_from_slice(bytes);
                        self.frames(&mut frame, at);
                    }
                }
            }
        };
        tokio::try_join!(there, back)?;
        Ok(())
    }

    /// Takes whole frames off the front, and notes those that have the marker.
    fn frames(&self, waiting: &mut Vec<u8>, at: Instant) {
        const END: &[u8] = b"}\n";
        while let Some(end) = find(waiting, END) {
            if let Some(start) = find(&waiting[..end], self.marker.as_bytes()) {
                let digits = waiting[start + self.marker.len()..end].iter();
                let digits = digits.take_while(|byte| byte.is_ascii_digit());
                let number = digits.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
                self.log().push((at, Passed::Frame(number)));
            }
            waiting.drain(..end + END.len());
        }
    }
}

#[derive(Clone, Copy)]
enum Request {
    Watch,
    Write { dry: bool },
    Other,
}

impl Request {
    /// What begins here, if a request does. A body of ours is JSON and begins with no verb.
    fn begins(bytes: &[u8]) -> Option<Self> {
        let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
        if line.starts_with(b"PATCH /") {
            return Some(Self::Write { dry: find(line, b"dryRun=All").is_some() });
        }
        let begins = [&b"GET /"[..], b"POST /", b"PUT /", b"DELETE /"];
        if !begins.iter().any(|verb| line.starts_with(verb)) {
            return None;
        }
        let watches = [&b"watch=1"[..], b"watch=true"].iter().any(|it| find(line, it).is_some());
        Some(if watches { Self::Watch } else { Self::Other })
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
