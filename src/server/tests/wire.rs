//! What readers see: chats, streams, attaching at any moment, stopping.

use axum::body::Body;
use axum::http::header;
use futures::StreamExt;
use learnharness::app::native::{AgentEvent, AssistantEvent, Message, Seq, StopReason};
use learnharness::app::transcript::Live;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

use crate::record::quiz;
use crate::support::app::TestApp;
use crate::support::reader::Reader;

/// A chat that has been running this long: "hi", and the beginning of an answer.
async fn speaking(app: &TestApp, words: &str) -> (String, Reader, crate::support::model::Asked) {
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "hi").await;
    let mut asked = app.model.request().await;
    asked.say(words);
    reader.says(words).await;
    (chat, reader, asked)
}

fn ends(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::AgentEnd { .. })
}

#[tokio::test]
async fn a_chat_is_made_and_listed_once_it_holds_something() {
    let app = TestApp::new().await;
    let made = app.post("/api/chats", &json!({})).await;
    assert_eq!(made.status, 201);
    assert_eq!(made.json().as_object().unwrap().keys().collect::<Vec<_>>(), ["id"]);
    assert_eq!(app.get("/api/chats").await.json(), json!([]));
    let (chat, mut reader, asked) = speaking(&app, "Hello.").await;
    let running = app.get("/api/chats").await.json();
    assert_eq!((running.as_array().unwrap().len(), &running[0]["running"]), (1, &json!(true)));
    asked.end(StopReason::Stop);
    reader.settled().await;
    let listed = &app.get("/api/chats").await.json()[0];
    let fields: Vec<&String> = listed.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["id", "title", "phase", "next", "running", "updated", "usage"]);
    assert_eq!((&listed["id"], &listed["title"]), (&json!(chat), &json!("hi")));
    assert_eq!(
        (&listed["phase"], &listed["next"]["kind"], &listed["running"]),
        (&json!("probe"), &json!("idle"), &json!(false))
    );
}

#[tokio::test]
async fn a_chat_is_shown_after_a_position_and_only_when_it_has_changed() {
    let app = TestApp::new().await;
    let (chat, mut reader, asked) = speaking(&app, "Hello.").await;
    asked.end(StopReason::Stop);
    reader.settled().await;
    let path = format!("/api/chats/{chat}?after=1");
    let shown = app.get(&path).await;
    let view = shown.json();
    let fields: Vec<&String> = view.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["id", "title", "phase", "running", "pending", "plan", "usage", "jobs", "messages"]);
    assert_eq!((view["messages"].as_array().unwrap().len(), &view["messages"][0]["seq"]), (1, &json!(2)));
    let tag = shown.headers[header::ETAG].clone();
    let again = async |tag: &header::HeaderValue| {
        let request = app.request("GET", &path).header(header::IF_NONE_MATCH, tag);
        app.send(request.body(Body::empty()).unwrap()).await
    };
    let known = again(&tag).await;
    assert_eq!((known.status.as_u16(), known.text.as_str()), (304, ""));
    app.text(&chat, "more").await;
    assert_eq!(again(&tag).await.status, 200);
    app.model.reply("Well.").await;
    reader.settled().await;
    assert_eq!(app.get("/api/chats/nowhere").await.kind(), "not-found");
    assert_eq!(app.get("/api/chats/nowhere/stream").await.kind(), "not-found");
    assert_eq!(app.get(&format!("/api/chats/{chat}?after=x")).await.kind(), "malformed");
    assert_eq!(app.get(&format!("/api/chats/{chat}/stream?updates=some")).await.kind(), "malformed");
}

#[tokio::test]
async fn a_stream_of_a_chat_where_nothing_goes_on_is_over_at_once() {
    let app = TestApp::new().await;
    let chat = app.chat_with(vec![Message::user("hi", 0)]).await;
    let mut reader = app.stream(&format!("/api/chats/{chat}/stream?after=0")).await;
    reader.rest().await;
    assert_eq!(reader.log, ["0 message_start user", "1 message_end user", "1 turn-settled", "1 [DONE]"]);
    let mut reader = app.stream(&format!("/api/chats/{chat}/stream")).await;
    reader.rest().await;
    assert_eq!(reader.log, ["1 turn-settled", "1 [DONE]"], "without a position: from now");
}

#[tokio::test]
async fn a_stream_that_stays_begins_with_activity_and_carries_later_runs() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut reader = app.follow(&chat).await;
    for text in ["one", "two"] {
        reader.settled().await;
        app.text(&chat, text).await;
        app.model.reply("Yes.").await;
        reader.until("agent_end", |event, _| ends(event)).await;
    }
    reader.settled().await;
    assert_eq!(reader.log[..3], ["0 activity", "0 turn-settled", "0 agent_start"]);
    assert_eq!(reader.log.iter().filter(|line| line.ends_with("agent_start")).count(), 2);
    assert_eq!(reader.live.record, app.record(&chat).await);
}

#[tokio::test]
async fn an_event_carries_the_position_of_the_last_message_that_is_stored_with_it() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "hi").await;
    app.model.call(&[("q", "quiz", quiz())]).await;
    reader.settled().await;
    let log: Vec<&str> = reader.log.iter().map(String::as_str).filter(|line| !line.contains("update")).collect();
    assert_eq!(
        log[2..],
        [
            "0 agent_start",
            "0 turn_start",
            "0 message_start user",
            "1 message_end user",
            "1 message_start assistant",
            "2 message_end assistant",
            "2 tool_execution_start q",
            "2 tool_execution_end q",
            "2 message_start toolResult q",
            "2 message_end toolResult q",
            "2 turn_end assistant",
            "2 agent_end",
            "2 turn-settled",
        ]
    );
}

#[tokio::test]
async fn the_message_that_was_sent_comes_once_to_those_who_have_it_and_to_those_who_do_not() {
    let app = TestApp::new().await;
    let (chat, mut reader, asked) = speaking(&app, "He").await;
    let mut late = app.stream(&format!("/api/chats/{chat}/stream?after=1&follow=1")).await;
    asked.end(StopReason::Stop);
    reader.settled().await;
    late.settled().await;
    let users = |reader: &Reader| reader.log.iter().filter(|line| line.ends_with("message_end user")).count();
    assert_eq!((users(&reader), users(&late)), (1, 0));
}

#[tokio::test]
async fn a_wait_for_the_next_try_is_shown_to_all_readers_until_the_answer_begins() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "hi").await;
    let mut asked = app.model.request().await;
    asked.retry(1, 3_000);
    let waits = |reader: &Reader| reader.live.tail.retry.as_ref().map(|retry| (retry.attempt, retry.wait_ms));
    let shown = reader.until("the wait", |_, live| live.tail.retry.is_some()).await.data;
    let retry = json!({"attempt": 1, "waitMs": 3000, "reason": "Busy."});
    let activity = json!({"type": "activity", "running": true, "retry": retry});
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), activity);
    let looked = async || app.get(&format!("/api/chats/{chat}?after=1")).await.json()["retry"].clone();
    assert_eq!(looked().await, json!({"attempt": 1, "waitMs": 3000, "reason": "Busy."}), "who only looks sees it, too");
    let mut late = app.stream(&format!("/api/chats/{chat}/stream?after=0")).await;
    late.until("the wait", |_, live| live.tail.retry.is_some()).await;
    assert_eq!(late.log.last().unwrap(), "1 activity");
    asked.retry(2, 500);
    for reader in [&mut reader, &mut late] {
        reader
            .until("the second wait", |_, live| live.tail.retry.as_ref().is_some_and(|retry| retry.attempt == 2))
            .await;
    }
    asked.say("Hello.");
    for reader in [&mut reader, &mut late] {
        reader.says("Hello.").await;
        assert_eq!(waits(reader), None);
    }
    assert_eq!(looked().await, Value::Null);
    let mut last = app.stream(&format!("/api/chats/{chat}/stream?after=1")).await;
    last.says("Hello.").await;
    assert_eq!((waits(&last), last.log.iter().filter(|line| line.ends_with("activity")).count()), (None, 0));
    asked.end(StopReason::Stop);
    reader.settled().await;
    assert_eq!(app.lines(&chat).await, ["user hi", "assistant[Stop] Hello."], "no trace of it is kept");
}

#[tokio::test]
async fn a_run_that_is_stopped_while_it_waits_for_the_next_try_waits_no_more() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "hi").await;
    let asked = app.model.request().await;
    asked.retry(1, 60_000);
    reader.until("the wait", |_, live| live.tail.retry.is_some()).await;
    assert_eq!(app.stop(&chat).await, 202);
    reader.settled().await;
    assert_eq!(reader.live.tail.retry, None);
}

#[tokio::test]
async fn last_event_id_beats_the_position_in_the_address() {
    let app = TestApp::new().await;
    let chat = app.chat_with(vec![Message::user("one", 0), Message::user("two", 0)]).await;
    let request = app.request("GET", &format!("/api/chats/{chat}/stream?after=0")).header("last-event-id", "1");
    let mut reader = app.stream_by(request.body(Body::empty()).unwrap()).await;
    reader.rest().await;
    assert_eq!(reader.log, ["1 message_start user", "2 message_end user", "2 turn-settled", "2 [DONE]"]);
    let request = app.request("GET", &format!("/api/chats/{chat}/stream")).header("last-event-id", "x");
    assert_eq!(app.send(request.body(Body::empty()).unwrap()).await.kind(), "malformed");
}

#[tokio::test]
async fn full_updates_are_whole_and_delta_updates_only_where_folding_would_not_do() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.text(&chat, "hi").await;
    let mut full = app.stream(&format!("/api/chats/{chat}/stream")).await;
    let mut delta = app.stream(&format!("/api/chats/{chat}/stream?updates=delta")).await;
    let mut asked = app.model.request().await;
    asked.say("Hel");
    asked.say("lo.");
    asked.call("q", "quiz", &quiz());
    asked.end(StopReason::ToolUse);
    let whole = |events: Vec<crate::support::reader::Sent>| -> Vec<String> {
        let updates = events.into_iter().filter(|sent| sent.data.contains("message_update"));
        updates
            .map(|sent| {
                let json: Value = serde_json::from_str(&sent.data).unwrap();
                assert!(json["assistantMessageEvent"]["partial"].is_null(), "{json}");
                let mark = if json["message"].is_object() { "+" } else { "" };
                format!("{}{mark}", json["assistantMessageEvent"]["type"].as_str().unwrap())
            })
            .collect()
    };
    let steps = ["text_start", "text_delta", "text_delta", "toolcall_start", "toolcall_delta", "toolcall_end"];
    assert_eq!(whole(full.rest().await), steps.map(|step| format!("{step}+")));
    let sent = ["text_start", "text_delta", "text_delta", "toolcall_start+", "toolcall_delta", "toolcall_end"];
    assert_eq!(whole(delta.rest().await), sent);
    assert_eq!(full.live.record, delta.live.record);
}

#[tokio::test]
async fn whoever_attaches_in_mid_message_gets_it_whole_and_then_what_follows() {
    let app = TestApp::new().await;
    let (chat, mut reader, mut asked) = speaking(&app, "Half ").await;
    let mut text = "Half ".to_owned();
    for updates in ["full", "delta"] {
        let mut late = app.stream(&format!("/api/chats/{chat}/stream?after=0&updates={updates}")).await;
        late.says(&text).await;
        let begun: Vec<&str> = late.log.iter().map(String::as_str).collect();
        let expected = [
            "0 agent_start",
            "0 turn_start",
            "0 message_start user",
            "1 message_end user",
            "1 message_start assistant",
        ];
        assert_eq!(begun, expected);
        assert_eq!(late.live, reader.live);
        // The first update after an attach is whole.
        asked.say(updates);
        text.push_str(updates);
        let update = late.next().await.unwrap();
        assert!(update.data.contains("\"message\":{"), "{}", update.data);
        reader.until(updates, |_, live| live == &late.live).await;
    }
    asked.end(StopReason::Stop);
    reader.settled().await;
}

#[tokio::test]
async fn a_reader_who_leaves_stops_nothing_and_finds_everything_again() {
    let app = TestApp::new().await;
    let (chat, mut reader, mut asked) = speaking(&app, "One ").await;
    let left = app.stream(&format!("/api/chats/{chat}/stream?after=0&updates=delta")).await;
    drop(left);
    asked.say("two ");
    reader.says("One two ").await;
    let live = reader.live.clone();
    let position = live.position();
    drop(reader);
    asked.say("three.");
    assert!(!asked.cancel.is_cancelled());
    asked.end(StopReason::Stop);
    let path = format!("/api/chats/{chat}/stream?after={position}&follow=1&updates=delta");
    let mut again = app.stream(&path).await.knowing(live);
    again.settled().await;
    assert_eq!(again.live.record, app.record(&chat).await);
    assert_eq!(app.lines(&chat).await[1], "assistant[Stop] One two three.");
}

#[tokio::test]
async fn a_reader_who_lags_behind_ends_where_the_others_end() {
    let app = TestApp::new().await;
    let (chat, mut reader, mut asked) = speaking(&app, "0").await;
    let mut slow = app.stream(&format!("/api/chats/{chat}/stream?after=0&updates=delta")).await;
    slow.says("0").await;
    let mut text = "0".to_owned();
    for number in 1..3000 {
        let delta = format!(" {number}");
        asked.say(&delta);
        text.push_str(&delta);
        // The other reader keeps up, so that the run has come that far.
        reader.says(&text).await;
    }
    slow.says(&text).await;
    assert!(slow.log.len() < 2900, "{} events were held for a reader who does not read", slow.log.len());
    asked.end(StopReason::Stop);
    reader.settled().await;
    slow.settled().await;
    assert_eq!(slow.live, reader.live);
}

#[tokio::test]
async fn the_teacher_follows_the_prober_in_the_same_activation() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    let mut short = None;
    app.text(&chat, "hi").await;
    let mut asked = app.model.request().await;
    assert!(asked.request.system.contains("You are probing."));
    short.replace(app.stream(&format!("/api/chats/{chat}/stream?after=0")).await);
    let assessment = json!({"assessment": {"known": ["sums"], "shaky": [], "unknown": [], "goal": "Fractions."}});
    asked.call("d", "probe_done", &assessment);
    asked.end(StopReason::ToolUse);
    let asked = app.model.request().await;
    assert!(asked.request.system.contains("You are planning."));
    let last = asked.texts().pop().unwrap();
    assert!(last.starts_with("user The probe is done.\nKnown: sums"), "{last}");
    asked.end(StopReason::Stop);
    reader.settled().await;
    let kinds: Vec<&str> = reader.log.iter().filter_map(|line| line.split_once(' ')).map(|(_, kind)| kind).collect();
    let ends: Vec<&&str> =
        kinds.iter().filter(|kind| ["agent_start", "agent_end", "turn-settled"].contains(kind)).collect();
    assert_eq!(ends, [&"turn-settled", &"agent_start", &"agent_end", &"agent_start", &"agent_end", &"turn-settled"]);
    let markers = app.lines(&chat).await.iter().filter(|line| *line == "marker probe-handoff").count();
    assert_eq!(markers, 1);
    // A stream that does not stay carries both runs, too.
    let mut short = short.unwrap();
    short.rest().await;
    assert_eq!(short.live.record, reader.live.record);
}

#[tokio::test]
async fn any_client_stops_a_run_and_what_was_said_is_kept() {
    let app = TestApp::new().await;
    let (chat, mut reader, asked) = speaking(&app, "Half a sen").await;
    assert_eq!(app.stop(&chat).await, 202);
    assert_eq!(app.stop(&chat).await, 202, "twice is as good as once");
    reader.settled().await;
    assert!(asked.cancel.is_cancelled(), "the stop reaches the provider");
    assert_eq!(app.lines(&chat).await, ["user hi", "assistant[Aborted] Half a sen"]);
    assert_eq!(app.stop(&chat).await, 200, "nothing runs any more");
    app.text(&chat, "go on").await;
    let asked = app.model.request().await;
    assert_eq!(asked.texts(), ["user hi", "assistant[Aborted] Half a sen", "user go on"]);
    asked.end(StopReason::Stop);
    reader.settled().await;
    let nowhere = app.post("/api/activity/abort", &json!({"chatId": "nowhere"})).await;
    assert_eq!((nowhere.status.as_u16(), nowhere.kind().as_str()), (404, "not-found"));
}

#[tokio::test]
async fn a_stop_closes_the_questions_that_wait() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "hi").await;
    app.model.call(&[("q", "quiz", quiz()), ("r", "quiz", quiz())]).await;
    reader.settled().await;
    assert_eq!(app.stop(&chat).await, 202);
    reader.until("both results", |_, live| live.record.len() == 4).await;
    assert_eq!(app.stop(&chat).await, 200);
    assert_eq!(app.get("/api/chats").await.json()[0]["next"]["kind"], "idle");
    let late = app.input(&chat, json!({"type": "answer", "toolCallId": "q", "answer": {"values": ["4"]}})).await;
    assert_eq!(late.kind(), "invalid");
}

#[tokio::test]
async fn a_question_that_is_posed_while_the_stop_is_on_its_way_is_closed_as_well() {
    let app = TestApp::new().await;
    let (chat, mut reader, mut asked) = speaking(&app, "Try:").await;
    asked.call("q", "quiz", &quiz());
    asked.end(StopReason::ToolUse);
    assert_eq!(app.stop(&chat).await, 202);
    reader.settled().await;
    assert_eq!(app.get("/api/chats").await.json()[0]["next"]["kind"], "idle", "{:?}", app.lines(&chat).await);
}

#[tokio::test]
async fn a_stop_holds_the_handoff_until_the_learner_goes_on() {
    let app = TestApp::new().await;
    let (chat, mut reader, mut asked) = speaking(&app, "Enough.").await;
    asked.call("d", "probe_done", &json!({"assessment": {"known": [], "shaky": [], "unknown": [], "goal": "Add."}}));
    asked.end(StopReason::ToolUse);
    assert_eq!(app.stop(&chat).await, 202);
    reader.settled().await;
    assert!(app.model.is_idle());
    app.text(&chat, "go on").await;
    let asked = app.model.request().await;
    assert!(asked.request.system.contains("You are planning."));
    asked.end(StopReason::Stop);
    reader.settled().await;
}

#[tokio::test]
async fn a_message_sent_right_after_agent_end_never_meets_a_409() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    for round in 0..20 {
        app.text(&chat, &format!("{round}")).await;
        app.model.reply("Yes.").await;
        reader.until("agent_end", |event, _| ends(event)).await;
    }
    reader.settled().await;
    assert_eq!(reader.live.record.len(), 40);
}

#[tokio::test]
async fn a_message_that_comes_while_a_run_ends_begins_a_run_of_its_own() {
    let app = TestApp::new().await;
    for _ in 0..30 {
        let (chat, mut reader, asked) = speaking(&app, "One.").await;
        asked.end(StopReason::Stop);
        while app.input(&chat, json!({"type": "text", "text": "again"})).await.status == 409 {}
        let mut asked = app.model.request().await;
        asked.say("Two.");
        reader.says("Two.").await;
        assert_eq!(app.get(&format!("/api/chats/{chat}")).await.json()["running"], true);
        assert_eq!(app.stop(&chat).await, 202, "the new run can be stopped");
        reader.until("agent_end", |event, _| ends(event)).await;
        reader.settled().await;
        assert_eq!(app.lines(&chat).await[3], "assistant[Aborted] Two.");
    }
}

#[tokio::test]
async fn over_a_socket_a_stream_is_sent_as_it_comes_and_not_compressed() {
    let (app, root) = TestApp::serve().await;
    let chat = app.chat().await;
    app.text(&chat, "hi").await;
    let mut asked = app.model.request().await;
    let client = reqwest::Client::new();
    let request = client.get(format!("{root}/api/chats/{chat}/stream?updates=delta"));
    let response = request.header(header::ACCEPT_ENCODING, "gzip, br, zstd, deflate").send().await.unwrap();
    assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
    assert!(!response.headers().contains_key(header::CONTENT_ENCODING));
    assert_eq!(response.headers()[header::CACHE_CONTROL], "no-cache, no-transform");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let other = client.get(format!("{root}/api/chats/{chat}")).header(header::ACCEPT_ENCODING, "gzip");
    assert_eq!(other.send().await.unwrap().headers()[header::CONTENT_ENCODING], "gzip", "everything else is");
    let mut bytes = response.bytes_stream();
    let mut text = String::new();
    for piece in ["Hel", "lo."] {
        asked.say(piece);
        while !text.contains(&format!("\"delta\":\"{piece}\"")) {
            let piece = crate::support::soon("a piece", bytes.next()).await.unwrap().unwrap();
            text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }
    asked.end(StopReason::Stop);
    while let Some(piece) = crate::support::soon("the end", bytes.next()).await {
        text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
}

/// The reported fault 50 (`fixtures/faults`): one reader stops reading its socket while much is said.
#[tokio::test]
async fn a_reader_that_stops_reading_ends_with_what_a_quick_one_has_and_holds_up_nobody() {
    let (app, root) = TestApp::serve().await;
    let (chat, mut quick, mut asked) = speaking(&app, "So: ").await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let addr = root.strip_prefix("http://").unwrap();
    let mut slow = socket.connect(addr.parse().unwrap()).await.unwrap();
    let path = format!("/api/chats/{chat}/stream?after=0&updates=delta");
    slow.write_all(format!("GET {path} HTTP/1.0\r\nHost: {addr}\r\n\r\n").as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains("So: ") {
        crate::support::soon("the first words", slow.read_buf(&mut bytes)).await.unwrap();
    }
    let deltas = |event: &AgentEvent| match event {
        AgentEvent::MessageUpdate { message: None, assistant_message_event: AssistantEvent::TextDelta { .. } } => 1,
        _ => 0,
    };
    for _ in 0..400 {
        (0..50).for_each(|_| asked.say(&"a".repeat(200)));
        let mut came = 0;
        quick
            .until("50 deltas", |event, _| {
                came += deltas(event);
                came == 50
            })
            .await;
    }
    asked.end(StopReason::Stop);
    quick.settled().await;
    crate::support::soon("all that is left", slow.read_to_end(&mut bytes)).await.unwrap();
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let mut slow = Reader::new(Body::from(bytes.split_off(head)).into_data_stream());
    let read = slow.rest().await;
    assert_eq!(read.last().unwrap().data, "[DONE]");
    assert_eq!(slow.live.record, quick.live.record);
    let answer = slow.live.record[1].message.as_assistant().unwrap();
    assert_eq!(answer.text().len(), "So: ".len() + 20_000 * 200);
}

#[tokio::test]
async fn everyone_ends_with_the_view_of_one_who_watched_from_the_start() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut watcher = app.watch(&chat).await;
    let mut readers: Vec<Reader> = Vec::new();
    let attach = async |readers: &mut Vec<Reader>, position: Seq| {
        for after in 0..=position.0 {
            for updates in ["full", "delta"] {
                let path = format!("/api/chats/{chat}/stream?after={after}&follow=1&updates={updates}");
                let record = app.record(&chat).await.into_iter().take(after as usize).collect();
                readers.push(app.stream(&path).await.knowing(Live::new(record)));
            }
        }
    };
    attach(&mut readers, Seq(0)).await;
    app.text(&chat, "hi").await;
    attach(&mut readers, Seq(1)).await;
    let mut asked = app.model.request().await;
    asked.say("Let me ");
    watcher.says("Let me ").await;
    attach(&mut readers, Seq(1)).await;
    asked.say("ask.");
    asked.call("q", "quiz", &quiz());
    asked.end(StopReason::ToolUse);
    watcher.settled().await;
    attach(&mut readers, Seq(2)).await;
    app.input(&chat, json!({"type": "answer", "toolCallId": "q", "answer": {"values": ["3"]}})).await;
    attach(&mut readers, Seq(3)).await;
    let mut asked = app.model.request().await;
    asked.say("No.");
    watcher.says("No.").await;
    attach(&mut readers, Seq(3)).await;
    asked.end(StopReason::Stop);
    watcher.settled().await;
    attach(&mut readers, Seq(4)).await;
    for reader in &mut readers {
        reader.until("the end", |event, live| matches!(event, AgentEvent::TurnSettled) && live.record.len() == 4).await;
        assert_eq!(reader.live, watcher.live, "{:#?}", reader.log);
    }
}
