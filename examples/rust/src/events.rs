//! The events of a task.

use crate::contracts::depute::tasks::v1 as tasks;
use crate::platform::{Platform, follow};
use std::cell::Cell;
use tasks::task_event::Payload;
use tasks::task_service_client::TaskServiceClient;
use tonic::Status;

const ENOUGH: i64 = 250;

/// Prints each event until the task ends. A broken stream continues after the last event that was read. `once` runs at
/// the first progress of at least 250 texts.
pub async fn print(platform: &Platform, task_id: &str, once: impl AsyncFn() -> Result<(), Status>) -> Result<(), Status> {
    let service = TaskServiceClient::new(platform.connection());
    let last = Cell::new(0);
    let mut is_due = true;
    let open = async || {
        let request = tasks::WatchTaskRequest {
            task_id: task_id.to_owned(),
            after_sequence: last.get(),
            ..Default::default()
        };
        service.clone().watch_task(request).await
    };
    follow(open, async |answer: tasks::WatchTaskResponse| {
        let Some(event) = answer.task_event else { return Ok(true) };
        last.set(event.sequence);
        println!("event {} {}", event.sequence, describe(&event));
        if let Some(Payload::Progress(progress)) = &event.payload
            && i64::from(progress.processed) >= ENOUGH
            && is_due
        {
            is_due = false;
            once().await?;
        }
        // The statuses from Completed on are terminal.
        Ok(event.status < tasks::TaskStatus::Completed.into())
    })
    .await
}

/// The kind of an event in snake case, and the progress.
fn describe(event: &tasks::TaskEvent) -> String {
    let Some(payload) = &event.payload else { return "unknown".to_owned() };
    if let Payload::Progress(progress) = payload {
        return format!("progress {}/{}", progress.processed, progress.total);
    }
    let form = format!("{payload:?}");
    let name = form.split('(').next().unwrap_or("");
    let mut word = String::new();
    for (index, one) in name.chars().enumerate() {
        if one.is_uppercase() && index > 0 {
            word.push('_');
        }
        word.extend(one.to_lowercase());
    }
    word
}
