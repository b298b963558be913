//! How a session stays in touch with its chat: a stream while something runs and the page is seen, looks otherwise.
//!
//! A stream needs one of few slots (see `platform::take_slot`); without one the page looks every two seconds and asks for a slot
//! again each time. Whatever breaks is asked for anew with growing waits, at once when the browser has reason to hope. Every
//! look and every stream makes the answers to earlier looks worthless, so that nothing old is shown after something new.

use std::pin::pin;

use futures::future::{Either, select};
use leptos::prelude::*;

use super::Session;
use crate::app::api;
use crate::app::native::view::ChatView;
use crate::app::native::{AgentEvent, ErrorBody, ErrorKind, Seq};
use crate::app::platform::{self, Following, Listening, Slot, Timer, Told};
use crate::app::transcript::Live;
use crate::app::transcript::live::Applied;

/// Milliseconds between two looks at a chat that is not streamed.
const LOOK_MS: u32 = 2_000;
/// Milliseconds between two looks at a chat that was deleted.
const GONE_LOOK_MS: u32 = 4_000;
/// Milliseconds after which a server that has not answered is said to be away.
const SLOW_MS: u32 = 2_000;
/// The longest wait between two tries to reach a server, in ms.
const LONGEST_WAIT_MS: u32 = 8_000;
/// Milliseconds that a stream may be silent before it is opened anew. A connection that died while the machine slept says
/// nothing, like a teacher who thinks; opening it once too often costs next to nothing.
const SILENCE_MS: f64 = 45_000.0;
/// Milliseconds between two checks of a stream's silence.
const CHECK_MS: u32 = 5_000;
/// Milliseconds that a stream must have held for its end not to count as one failure more.
const STEADY_MS: f64 = 5_000.0;

/// What a session holds of browser and server.
#[derive(Default)]
pub(super) struct Connection {
    /// The open stream; it ends before its slot is free.
    stream: Option<(Following, Slot)>,
    /// Counts what has been asked for; only the answer to the last is heard.
    asked: u32,
    /// How often the server could not be reached, in a row.
    failures: u32,
    /// An input is on its way: what the server says of the chat may not know of it yet.
    pub(super) sending: bool,
    /// When the stream was opened, and when it last said something.
    opened: f64,
    heard: f64,
    timer: Option<Timer>,
    listening: Vec<Option<Listening>>,
}

impl Session {
    /// Begins to follow the chat; it ends with the owner that this is called under.
    pub fn begin(self) {
        let [online, back] = platform::on_return(move || self.hope());
        let shown = platform::on_visibility(move || self.shown_or_hidden());
        self.connection.update_value(|connection| connection.listening = vec![online, back, shown]);
        if self.running.get_untracked() {
            self.live_task(self.connect());
        } else {
            self.look_in(LOOK_MS);
        }
        on_cleanup(move || {
            self.connection.try_update_value(|connection| *connection = Connection::default());
        });
    }

    /// Looks at once.
    pub fn look_now(self) {
        let sending = self.connection.try_with_value(|connection| connection.sending) == Some(true);
        if platform::is_visible() || sending {
            self.live_task(self.look());
        }
    }

    /// Asks for what is new, and opens the stream if something runs.
    pub(super) async fn look(self) {
        let (Some(chat), Some(position)) = (self.chat.try_get_value(), self.live.try_with_value(Live::position)) else {
            return;
        };
        let Some(asked) = self.ask() else { return };
        let answer = match select(pin!(api::chat(&chat, position)), pin!(platform::sleep(SLOW_MS))).await {
            Either::Left((answer, _)) => answer,
            Either::Right(((), answer)) => {
                if self.is_last(asked) {
                    let _ = self.lost.try_set(true);
                }
                answer.await
            }
        };
        if !self.is_last(asked) {
            return;
        }
        if !answer.as_ref().is_err_and(is_offline) {
            self.reached();
        }
        match answer {
            Ok(view) => self.see(view),
            Err(error) => self.missed(&error),
        }
    }

    /// The server is there: what was wrong with the connection is over.
    fn reached(self) {
        let _ = self.lost.try_set(false);
        self.calm(|kind| kind == ErrorKind::Offline);
    }

    /// What the server says of the chat as of now.
    fn see(self, view: ChatView) {
        if self.connection.try_with_value(|connection| connection.sending) != Some(false) {
            return self.look_in(LOOK_MS);
        }
        let running = view.running;
        self.ahead.try_set_value(Vec::new());
        self.live.try_update_value(|live| live.see(view.messages, running, view.retry));
        self.refresh();
        self.tell_waits();
        let _ = self.submitted.try_set(false);
        let _ = self.gone.try_set(false);
        let _ = self.running.try_set(running);
        if running {
            self.live_task(self.connect());
        } else {
            self.connection.try_update_value(|connection| connection.failures = 0);
            self.look_in(LOOK_MS);
        }
    }

    /// The server did not say how the chat is.
    fn missed(self, error: &ErrorBody) {
        match error.error.kind {
            ErrorKind::Offline => {
                let _ = self.lost.try_set(true);
                self.fail(2);
            }
            ErrorKind::Gone | ErrorKind::NotFound => self.deleted(),
            _ => {
                self.complain(error);
                self.look_in(LOOK_MS);
            }
        }
    }

    /// Counts a failure, and looks again after a wait that grows from the `at_least`th on; the first has none.
    fn fail(self, at_least: u32) {
        let counted = self.connection.try_update_value(|connection| {
            connection.failures = (connection.failures + 1).max(at_least);
            connection.failures
        });
        if let Some(failures) = counted {
            self.look_in(wait_ms(failures));
        }
    }

    /// The chat is gone: nothing more comes unless it is restored, and what was typed stays.
    pub(super) fn deleted(self) {
        self.leave();
        self.look_in(GONE_LOOK_MS);
        if self.gone.try_get_untracked() == Some(true) {
            return;
        }
        self.ahead.try_set_value(Vec::new());
        let _ = self.trouble.try_set(None);
        let _ = self.lost.try_set(false);
        let _ = self.running.try_set(false);
        let _ = self.submitted.try_set(false);
        let _ = self.gone.try_set(true);
        self.refresh();
    }

    /// Opens the stream at the record's position, if the page is seen and a slot is free.
    pub(super) async fn connect(self) {
        let Some(asked) = self.ask() else { return };
        if !platform::is_visible() {
            return;
        }
        let slot = platform::take_slot().await;
        let (Some(chat), Some(position)) = (self.chat.try_get_value(), self.live.try_with_value(Live::position)) else {
            return;
        };
        if !self.is_last(asked) {
            return;
        }
        let Some(slot) = slot else {
            // The first sign of an input that was sent is not waited for.
            let soon = self.submitted.try_get_untracked() == Some(true);
            return self.look_in(if soon { 0 } else { LOOK_MS });
        };
        let url = format!("/api/chats/{chat}/stream?after={position}&updates=delta&follow=1");
        let Some(following) = platform::follow(&url, move |told| self.told(told)) else { return self.fail(2) };
        self.connection.try_update_value(|connection| {
            connection.stream = Some((following, slot));
            (connection.opened, connection.heard) = (platform::now(), platform::now());
        });
        self.look_in(CHECK_MS);
    }

    fn told(self, told: Told) {
        match told {
            Told::Event(id, event) => {
                self.reached();
                self.connection.try_update_value(|connection| connection.heard = platform::now());
                self.take(id, &event);
            }
            Told::Lost => {
                self.connection.try_update_value(|connection| {
                    connection.stream = None;
                    if platform::now() - connection.opened > STEADY_MS {
                        connection.failures = 0;
                    }
                });
                self.fail(1);
            }
        }
    }

    fn take(self, id: Option<Seq>, event: &AgentEvent) {
        let Some(applied) = self.live.try_update_value(|live| live.apply(id, event)) else { return };
        match event {
            AgentEvent::AgentStart => {
                let _ = self.running.try_set(true);
            }
            AgentEvent::MessageEnd { .. } if applied == Applied::Taken => {
                self.ahead.try_set_value(Vec::new());
                let _ = self.submitted.try_set(false);
            }
            AgentEvent::TurnSettled => self.settled(),
            AgentEvent::Error(error) if error.error.kind == ErrorKind::Gone => return self.deleted(),
            _ => {}
        }
        self.tell_waits();
        if applied == Applied::Gap {
            self.leave();
            self.look_now();
        }
        self.refresh_soon();
    }

    /// Nothing runs any more: the stream has done its work.
    fn settled(self) {
        // What waits now must show together with the end of the run.
        self.refresh();
        let _ = self.running.try_set(false);
        let _ = self.submitted.try_set(false);
        self.calm(|kind| kind == ErrorKind::Busy);
        self.leave();
        self.connection.try_update_value(|connection| connection.failures = 0);
        self.look_in(LOOK_MS);
    }

    fn shown_or_hidden(self) {
        if platform::is_visible() {
            self.hope();
        } else {
            self.leave();
        }
    }

    /// The server may be there again, whatever it was before.
    fn hope(self) {
        let streaming = self.connection.try_update_value(|connection| {
            connection.failures = 0;
            connection.stream.is_some()
        });
        if streaming == Some(false) {
            self.look_now();
        }
    }

    /// The time has come to look, or to see whether the stream still says something.
    fn wake(self) {
        let silent = self.connection.try_with_value(|connection| {
            connection.stream.as_ref().map(|_| platform::now() - connection.heard > SILENCE_MS)
        });
        match silent {
            Some(Some(false)) => self.look_in(CHECK_MS),
            Some(Some(true) | None) => {
                self.connection.try_update_value(|connection| connection.stream = None);
                self.look_now();
            }
            None => {}
        }
    }

    fn look_in(self, ms: u32) {
        let timer = platform::after(ms, move || self.wake());
        self.connection.try_update_value(|connection| connection.timer = Some(timer));
    }

    /// Ends the stream, and makes what was asked for worthless.
    pub(super) fn leave(self) {
        self.connection.try_update_value(|connection| {
            connection.asked += 1;
            (connection.stream, connection.timer) = (None, None);
        });
    }

    /// Numbers what is asked for now; none when the page has been left, or streams.
    fn ask(self) -> Option<u32> {
        let ask = |connection: &mut Connection| {
            if connection.stream.is_some() {
                return None;
            }
            connection.asked += 1;
            connection.timer = None;
            Some(connection.asked)
        };
        self.connection.try_update_value(ask).flatten()
    }

    fn is_last(self, asked: u32) -> bool {
        self.connection.try_with_value(|connection| connection.asked == asked && connection.stream.is_none())
            == Some(true)
    }

    fn tell_waits(self) {
        let waits = self.live.try_with_value(|live| live.tail.retry.clone()).flatten();
        if self.waits.try_with_untracked(|known| *known != waits) == Some(true) {
            let _ = self.waits.try_set(waits);
        }
    }
}

fn is_offline(error: &ErrorBody) -> bool {
    error.error.kind == ErrorKind::Offline
}

/// Milliseconds before the server is tried again after so many failures in a row.
fn wait_ms(failures: u32) -> u32 {
    match failures {
        0 | 1 => 0,
        more => LONGEST_WAIT_MS.min(250 << more.min(8).saturating_sub(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_from_none_to_the_longest() {
        let waits: Vec<u32> = (1..9).map(wait_ms).collect();
        assert_eq!(waits, [0, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
        assert_eq!(wait_ms(u32::MAX), LONGEST_WAIT_MS);
    }
}
