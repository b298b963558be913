//! Learners in a house whose server is killed again and again, by a plan that its seed gives.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::house::{House, Moment};
use super::learner::Learner;
use super::ledger::Fault;
use super::producer::produce;
use super::tear;

/// How much is played.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) seed: u64,
    pub(super) kills: u32,
    pub(super) learners: u32,
    pub(super) watchers: u32,
    /// Between two sentences of a slow answer.
    pub(super) apart: Duration,
    /// The longest that a server lives before it is killed.
    pub(super) life: Duration,
    /// How long all lessons may take after the last kill.
    pub(super) patience: Duration,
}

/// What is done to the data between two lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Between {
    Nothing,
    /// The newest part of the database is torn off.
    Tear,
}

/// How a server dies.
enum Strike {
    After(Duration),
    /// At the nth moment of its kind.
    At(Moment, u32),
    /// After a while, and then once more while it starts, at this part of the time that a start takes.
    Twice(Duration, f64),
}

impl Strike {
    fn draw(rng: &mut StdRng, life: Duration) -> Self {
        let after = |rng: &mut StdRng| life.mul_f64(rng.random_range(0.05..1.0));
        match rng.random_range(0..10) {
            0 => Self::At(Moment::Accepted, rng.random_range(1..4)),
            1 => Self::At(Moment::MessageEnd, rng.random_range(1..10)),
            2 => Self::At(Moment::Update, rng.random_range(1..60)),
            3 => Self::At(Moment::Call, rng.random_range(1..5)),
            4 => Self::Twice(after(rng), rng.random_range(0.1..1.2)),
            _ => Self::After(after(rng)),
        }
    }
}

/// Plays until all kills are done and all lessons at their end.
pub(super) async fn run(house: Arc<House>, size: Size, between: Between) {
    let mut rng = StdRng::seed_from_u64(size.seed);
    let begun = Instant::now();
    let mut start = match house.start().await {
        Ok(took) => took,
        Err(words) => return house.ledger.fault(Fault::Stuck, words),
    };
    let mut class = Class::begin(&house, size, &mut rng);
    // What is torn off may be a steer that nobody knows of any more.
    if between == Between::Nothing {
        class.learners.spawn(produce(house.clone(), rng.random(), class.no_more.clone()));
    }
    while house.ledger.figures().kills < size.kills {
        strike(&house, Strike::draw(&mut rng, size.life), start).await;
        match between {
            Between::Nothing => {}
            Between::Tear => tear::tear(&house, &mut rng).await,
        }
        start = match house.start().await {
            Ok(took) => took,
            Err(words) => return house.ledger.fault(Fault::Stuck, words),
        };
        for chat in house.ledger.open_chats() {
            if class.client.audit(&chat).await.is_err() && !house.ledger.is_taken(&chat) {
                house.ledger.fault(Fault::Lost, format!("{chat} is gone"));
            }
        }
    }
    class.finish(size.patience).await;
    house.ledger.count(|figures| figures.took = begun.elapsed());
}

async fn strike(house: &House, strike: Strike, start: Duration) {
    match strike {
        Strike::After(life) => {
            tokio::time::sleep(life).await;
            house.kill().await;
        }
        Strike::At(moment, nth) => {
            house.strike_at(moment, nth, Duration::from_secs(5)).await;
            house.bury().await;
        }
        Strike::Twice(life, part) => {
            tokio::time::sleep(life).await;
            house.kill().await;
            house.start_and_kill(start.mul_f64(part)).await;
        }
    }
}

/// The learners of a house.
pub(super) struct Class {
    client: Client,
    no_more: CancellationToken,
    learners: JoinSet<()>,
}

impl Class {
    pub(super) fn begin(house: &Arc<House>, size: Size, rng: &mut StdRng) -> Self {
        let (client, no_more) = (Client::new(house.clone()), CancellationToken::new());
        let mut learners = JoinSet::new();
        for _ in 0..size.learners {
            let learner = Learner::new(client.clone(), rng.random(), size.watchers);
            learners.spawn(learner.learn(no_more.clone()));
        }
        Self { client, no_more, learners }
    }

    /// Lets every lesson come to its end, and looks at everything once more.
    pub(super) async fn finish(mut self, patience: Duration) {
        let (client, house) = (&self.client, &self.client.house);
        self.no_more.cancel();
        let all = async {
            while let Some(learner) = self.learners.join_next().await {
                if let Err(error) = learner {
                    house.ledger.fault(Fault::Server, format!("a learner gave up: {error}"));
                }
            }
        };
        if tokio::time::timeout(patience, all).await.is_err() {
            for chat in house.ledger.open_chats() {
                let words = format!("not at its end after {patience:?}: {}", client.describe(&chat).await);
                house.ledger.fault(Fault::Stuck, words);
            }
        }
        for chat in house.ledger.chats() {
            if client.audit(&chat).await.is_err() && !house.ledger.is_taken(&chat) {
                house.ledger.fault(Fault::Lost, format!("{chat} is gone"));
            }
        }
        for line in house.log().lines().filter(|line| line.contains("panicked")) {
            house.ledger.fault(Fault::Server, line);
        }
    }
}
