//! The dialect: its events, its pace and its end.

use std::borrow::Cow;

use futures::StreamExt;

use super::*;
use crate::server::llm::options::Options;

fn request(first: &str) -> Request<'static> {
    let chat = Chat::new(first);
    let (messages, tools) = (chat.messages.iter().cloned().map(Cow::Owned).collect(), chat.tools());
    let (session, options) = (String::new(), Options::default());
    Request { model: Lesson::model(), system: "Teach.".to_owned(), messages, tools, session, options }
}

fn teacher(pace: Duration) -> Lesson {
    Lesson::new(Arc::new(Packs::built_in().0), pace, Arc::new(|| 1_700_000_000_000))
}

#[tokio::test]
async fn a_stream_folds_to_its_final_message() {
    let request = request("fractions");
    let blocks = play(&Packs::built_in().0, &request.messages, &request.tools);
    let events: Vec<_> = teacher(Duration::ZERO).stream(request, CancellationToken::new()).collect().await;
    let StreamEvent::Start(mut message) = events[0].clone() else { panic!() };
    assert_eq!((message.stop_reason, message.content.len()), (StopReason::Pending, 0));
    let (mut wholes, mut updates) = (0, 0);
    for event in &events[1..events.len() - 1] {
        let StreamEvent::Update { event, whole } = event else { panic!("{event:?}") };
        updates += 1;
        fold(&mut message, event);
        if let Some(whole) = whole {
            wholes += 1;
            message = whole.clone();
        }
    }
    let Some(StreamEvent::End(end)) = events.last() else { panic!() };
    assert_eq!(message.content, end.content);
    assert_eq!((end.api.as_str(), end.provider.as_str(), end.model.as_str()), ("lesson", "learnharness", "lesson"));
    assert_eq!((end.stop_reason, end.timestamp, wholes), (StopReason::ToolUse, 1_700_000_000_000, 1));
    assert!(end.usage.input > 0 && end.usage.output > 0 && end.usage.cost.total == 0.0);
    assert!(updates > 60, "small steps: {updates}");
    assert_eq!(end.text(), blocks[1].as_text().unwrap());
    let call = end.tool_calls().next().unwrap();
    assert!(call.id.starts_with("lesson-0-purpose-"), "{}", call.id);
    assert_eq!(call.partial_args, None);
}

#[tokio::test]
async fn each_step_takes_the_pace() {
    let start = tokio::time::Instant::now();
    let pace = Duration::from_millis(1);
    let events: Vec<_> = teacher(pace).stream(request("fractions"), CancellationToken::new()).collect().await;
    let steps = u32::try_from(events.len() - 2).unwrap();
    assert!(start.elapsed() >= pace * steps);
}

#[tokio::test]
async fn a_cancelled_stream_ends_at_once_with_what_was_said() {
    let check = async |pace: Duration, after: usize| {
        let cancel = CancellationToken::new();
        let mut stream = teacher(pace).stream(request("fractions"), cancel.clone());
        let mut message = AssistantMessage::default();
        for _ in 0..after {
            match stream.next().await {
                Some(StreamEvent::Start(start)) => message = *start,
                Some(StreamEvent::Update { whole: Some(whole), .. }) => message = *whole,
                Some(StreamEvent::Update { event, whole: None }) => fold(&mut message, &event),
                other => panic!("{other:?}"),
            }
        }
        cancel.cancel();
        let rest: Vec<_> = tokio::time::timeout(Duration::from_secs(30), stream.collect()).await.unwrap();
        let [StreamEvent::End(end)] = rest.as_slice() else { panic!("{rest:?}") };
        assert_eq!(end.stop_reason, StopReason::Aborted);
        assert!(end.error_message.is_some());
        assert_eq!(end.text(), message.text());
        assert!(end.tool_calls().all(|call| call.partial_args.is_none()));
        assert_eq!(end.content.len(), message.content.len());
    };
    let steps = teacher(Duration::ZERO).stream(request("fractions"), CancellationToken::new()).count().await;
    for after in [1, 2, 30, steps - 3] {
        check(Duration::ZERO, after).await;
    }
    // In the middle of a long wait, too.
    check(Duration::from_secs(3600), 1).await;
}
