//! A reader of a chat's stream who goes on after each restart from where it was, and notes what it was told.

use std::collections::VecDeque;
use std::time::Instant;

use futures::StreamExt;
use learnharness::app::native::{AgentEvent, Message, Seq};
use learnharness::app::transcript::live::Applied;
use learnharness::app::transcript::{Live, Unit, group};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::client::{Client, NEWS};
use super::house::Moment;
use super::ledger::{Fault, Sighting, flat};
use crate::support::reader::{Order, Sent, kind, parse};

/// Events that are told with a fault.
const LOG: usize = 12;

pub(super) struct Reader {
    client: Client,
    chat: String,
    pub(super) live: Live,
    epoch: u32,
    /// The last events, for whoever looks for the reason of a fault.
    log: VecDeque<String>,
    /// The open answer by its time of birth, and when it was how long.
    born: i64,
    steps: Vec<(Instant, usize)>,
    /// The stream broke off while a run was open.
    was_cut: bool,
    /// Runs that went on by themselves after that.
    pub(super) recovered: u32,
}

/// How a reader attaches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) updates: &'static str,
    pub(super) follow: bool,
    /// It leaves after so many events.
    pub(super) enough: usize,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Nothing is left to do.
    Settled,
    /// The server died.
    Cut,
    /// The reader left.
    Enough,
    /// There is no such chat.
    Gone,
}

#[derive(Deserialize)]
struct End<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
}

impl Reader {
    pub(super) fn new(client: &Client, chat: &str) -> Self {
        let (client, chat) = (client.clone(), chat.to_owned());
        Self {
            client,
            chat,
            live: Live::default(),
            epoch: 0,
            log: VecDeque::new(),
            born: 0,
            steps: Vec::new(),
            was_cut: false,
            recovered: 0,
        }
    }

    /// What a page shows of it.
    pub(super) fn view(&self) -> Vec<Unit> {
        group(&self.live.record, &self.live.tail)
    }

    /// Reads until nothing is left to do, however often the server dies.
    pub(super) async fn settle(&mut self, updates: &'static str) -> Ended {
        loop {
            match self.read(Way { updates, follow: false, enough: usize::MAX }).await {
                Ended::Cut | Ended::Enough => {}
                ended => return ended,
            }
        }
    }

    /// Attaches at its position, and reads.
    pub(super) async fn read(&mut self, way: Way) -> Ended {
        let (nth, addr, epoch) = self.client.house.up().await;
        if epoch != self.epoch {
            (self.live, self.epoch) = (Live::default(), epoch);
        }
        let (after, follow) = (self.live.position(), u8::from(way.follow));
        let url = format!(
            "http://{addr}/api/chats/{}/stream?after={after}&updates={}&follow={follow}",
            self.chat, way.updates
        );
        self.note(format!("attached to life {nth} after {after}"));
        let ended = match self.client.http.get(url).send().await {
            Ok(response) if response.status() == 404 => return Ended::Gone,
            Ok(response) => self.follow(response, way, Order::after(after)).await,
            Err(_) => None,
        };
        if let Some(ended) = ended {
            return ended;
        }
        self.was_cut |= self.live.tail.running;
        match self.client.house.ended(nth, NEWS).await {
            Some(since) => self.see(since),
            None => self.fault("a stream broke off by itself"),
        }
        Ended::Cut
    }

    fn note(&mut self, what: String) {
        if self.log.len() == LOG {
            self.log.pop_front();
        }
        self.log.push_back(what);
    }

    /// Takes events until the end; none when the stream breaks off.
    async fn follow(&mut self, response: reqwest::Response, way: Way, mut order: Order) -> Option<Ended> {
        let mut bytes = response.bytes_stream();
        let (mut text, mut count) = (Vec::new(), 0);
        loop {
            text.extend_from_slice(&bytes.next().await?.ok()?);
            while let Some(end) = text.windows(2).position(|pair| pair == b"\n\n") {
                let block = String::from_utf8(text.drain(..end + 2).collect()).unwrap();
                let Some(sent) = parse(block.trim_end()) else { continue };
                let Some(event) = &sent.event else { return Some(Ended::Settled) };
                self.note(format!("{} {}", sent.id, kind(event)));
                if let Err(words) = order.check(sent.id, event) {
                    self.fault(&words);
                }
                self.take(&sent, event);
                count += 1;
                if count >= way.enough {
                    return Some(Ended::Enough);
                }
            }
        }
    }

    fn take(&mut self, sent: &Sent, event: &AgentEvent) {
        let is_placeholder = |message: &Message| {
            message.as_tool_result().is_some_and(learnharness::app::native::ToolResultMessage::is_posed_placeholder)
        };
        if let AgentEvent::MessageEnd { message } = event
            && !is_placeholder(message)
        {
            let End { message: raw } = serde_json::from_str(&sent.data).unwrap();
            self.client.house.ledger.publish(self.epoch, &self.chat, sent.id, raw.get());
        }
        if self.live.apply(Some(sent.id), event) == Applied::Gap {
            self.fault(&format!("a gap before {} at {}", kind(event), sent.id));
        }
        self.watch_answer();
        match event {
            AgentEvent::AgentStart => self.recovered += u32::from(std::mem::take(&mut self.was_cut)),
            AgentEvent::TurnSettled => self.was_cut = false,
            AgentEvent::MessageEnd { .. } => self.client.house.observe(Moment::MessageEnd),
            AgentEvent::MessageUpdate { .. } => self.client.house.observe(Moment::Update),
            AgentEvent::ToolExecutionStart { .. } => self.client.house.observe(Moment::Call),
            _ => {}
        }
    }

    /// Notes how long the open answer is by now.
    fn watch_answer(&mut self) {
        let Some(open) = &self.live.tail.open else { return self.steps.clear() };
        if open.timestamp != self.born {
            self.born = open.timestamp;
            self.steps.clear();
        }
        let length = flat(open).len();
        if self.steps.last().map_or(0, |(_, known)| *known) < length {
            self.steps.push((Instant::now(), length));
        }
    }

    /// Tells of the open answer as it was at the kill.
    fn see(&mut self, since: Instant) {
        let steps = std::mem::take(&mut self.steps);
        let Some(open) = self.live.tail.open.clone().filter(|_| !steps.is_empty()) else { return };
        let steps = steps.into_iter().map(|(seen, length)| (since.saturating_duration_since(seen), length)).collect();
        let ledger = &self.client.house.ledger;
        let kill = ledger.figures().kills + 1;
        ledger.see(self.epoch, &self.chat, Sighting { kill, position: self.live.position(), open, steps });
    }

    /// The position up to which it knows the record.
    pub(super) fn position(&self) -> Seq {
        self.live.position()
    }

    fn fault(&self, words: &str) {
        self.client.house.ledger.fault(Fault::Reader, format!("{}: {words}: {:?}", self.chat, self.log));
    }
}
