//! An agent that scores the sentiment of texts. README.md lists its settings.

use depute_examples::contracts::depute::tasks::v1::worker_service_client::WorkerServiceClient;
use depute_examples::contracts::depute::tasks::v1::{Assignment, WatchAssignmentsRequest, WatchAssignmentsResponse};
use depute_examples::platform::{Failure, Platform, follow, setting};
use depute_examples::sentiment::{self, Sums};
use depute_examples::work::{End, Work};
use depute_examples::{authority, keys, registration};
use serde_json::Value;
use std::{rc::Rc, time::Duration};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

const BATCH: usize = 50;
const MICROCENTS_PER_TEXT: i64 = 100;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut terminated = signal(SignalKind::terminate())?;
    let tasks = tokio::task::LocalSet::new();
    tokio::select! {
        ended = tasks.run_until(run()) => ended,
        _ = terminated.recv() => Ok(()),
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

async fn run() -> Result<(), Failure> {
    let platform = Rc::new(Platform::from_settings("worker.key")?);
    let agent_id = setting("DEPUTE_AGENT", "sentiment");
    let pause = Duration::from_millis(setting("DEPUTE_PAUSE_MS", "0").parse()?);
    registration::register(&platform, &agent_id, sentiment::capability()).await?;
    let workers = WorkerServiceClient::new(platform.connection());
    println!("ready");
    let watch = WatchAssignmentsRequest { agent_id, capacity: 4, begin: true, ..Default::default() };
    let open = async || {
        let stream_id = keys::new_request_id();
        workers.clone().watch_assignments(WatchAssignmentsRequest { stream_id, ..watch.clone() }).await
    };
    let each = async |answer: WatchAssignmentsResponse| {
        if let Some(assignment) = answer.assignment {
            tokio::task::spawn_local(perform(platform.clone(), assignment, pause));
        }
        Ok(true)
    };
    Ok(follow(open, each).await?)
}

async fn perform(platform: Rc<Platform>, assignment: Assignment, pause: Duration) {
    let work = Work::new(&platform, assignment);
    let done = tokio::select! {
        sums = score(&platform, &work, pause) => sums,
        end = work.heartbeats() => Err(end),
    };
    work.end(done).await;
}

/// The output, its cost, and the id of its attestation; empty for work without a contract.
async fn score(platform: &Platform, work: &Work, pause: Duration) -> Result<(Value, i64, String), End> {
    let began = Instant::now();
    work.start().await?;
    let input = work.input();
    let texts = sentiment::texts_of(&input);
    let mut sums = Sums::from_checkpoint(&work.checkpoint);
    for batch in texts[sums.count.min(texts.len())..].chunks(BATCH) {
        sums.add(batch);
        work.save(&sums.document(), sums.count, texts.len()).await?;
        sleep(pause).await;
    }
    let (output, cost) = (sums.document(), MICROCENTS_PER_TEXT * texts.len() as i64);
    let millis = began.elapsed().as_millis() as i64;
    let attestation_id = authority::attest(platform, &work.task, &output, cost, millis).await?;
    Ok((output, cost, attestation_id))
}
