//! A model that never answers, for tests whose runs are played from a script.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;

use crate::server::llm::catalog::{Api, Model, Models};
use crate::server::llm::options::Options;
use crate::server::llm::{Dialect, Request, StreamEvent};

struct Silent;

impl Dialect for Silent {
    fn stream(&self, _: Request, _: CancellationToken) -> BoxStream<'static, StreamEvent> {
        futures::stream::pending().boxed()
    }
}

pub(super) fn models() -> Models {
    let model = Model { id: "silent".to_owned(), provider: "tests".to_owned(), api: Api::Lesson, ..Model::default() };
    Models { model, dialect: Arc::new(Silent), options: Options::default() }
}
