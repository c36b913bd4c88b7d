//! One request and its answer, as gix reads them: in halves, headers first, and nothing sent before
//! the answer is looked at.

use super::super::link::{Bounded, Budget, Cause, Told, size};
use super::{refusal, words_of};
use crate::limits::MAX_REQUEST_BYTES;
use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ureq::http::Response;
use ureq::{Agent, Body};

/// A request and its answer: the request is sent when the answer is first looked at, since only
/// then its body is whole.
pub(super) struct Exchange(pub(super) Arc<Mutex<State>>);

pub(super) enum State {
    Asking(Box<Pending>),
    Answered { headers: Option<Vec<u8>>, body: Option<BufReader<Bounded<Box<dyn Read + Send>>>> },
    Failed,
}

pub(super) struct Pending {
    pub(super) agent: Agent,
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) question: Vec<u8>,
    pub(super) budget: Budget,
    pub(super) told: Told,
}

impl Exchange {
    pub(super) fn asking(pending: Pending) -> Self {
        Self(Arc::new(Mutex::new(State::Asking(Box::new(pending)))))
    }

    pub(super) fn answered(answer: Response<Body>, budget: &Budget) -> Self {
        Self(Arc::new(Mutex::new(State::of(answer, budget))))
    }

    pub(super) fn halves(self) -> (Headers, Answer) {
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
pub(super) struct Question(pub(super) Arc<Mutex<State>>);

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
pub(super) struct Headers {
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
pub(super) struct Answer {
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
