//! The calls of one assignment.

use crate::contracts::depute::tasks::v1 as tasks;
use crate::documents;
use crate::keys::new_request_id;
use crate::platform::{Connection, Platform, retry};
use serde_json::Value;
use std::future::pending;
use std::time::Duration;
use tasks::WorkerDirective as Directive;
use tasks::worker_service_client::WorkerServiceClient;
use tokio::time::sleep;
use tonic::{Code, Status};

/// Why work ends without a result.
pub enum End {
    /// The platform's instruction. A lost lease and a denied token count as Stop.
    Directed(Directive),
    Failed(Status),
}

impl From<Status> for End {
    fn from(status: Status) -> Self {
        match status.code() {
            Code::Aborted | Code::NotFound | Code::PermissionDenied => Self::Directed(Directive::Stop),
            _ => Self::Failed(status),
        }
    }
}

/// Work that the platform has assigned.
pub struct Work {
    pub task: tasks::Task,
    /// The checkpoint of an earlier attempt, or null.
    pub checkpoint: Value,
    lease: Option<tasks::Lease>,
    interval: Duration,
    workers: WorkerServiceClient<Connection>,
}

impl Work {
    pub fn new(platform: &Platform, assignment: tasks::Assignment) -> Self {
        let interval = assignment.heartbeat_interval.and_then(|one| Duration::try_from(one).ok());
        Self {
            task: assignment.task.unwrap_or_default(),
            checkpoint: assignment.checkpoint.as_ref().map_or(Value::Null, documents::plain),
            lease: assignment.lease,
            interval: interval.unwrap_or(Duration::from_secs(1)) / 2,
            workers: WorkerServiceClient::new(platform.connection()),
        }
    }

    pub fn input(&self) -> Value {
        self.task.input.as_ref().map_or(Value::Null, documents::plain)
    }

    /// Starts the work, unless the platform has done so.
    pub async fn start(&self) -> Result<(), End> {
        if self.task.status() != tasks::TaskStatus::Running {
            let request = tasks::StartAssignmentRequest { lease: self.lease.clone() };
            retry(&request, async |request| self.workers.clone().start_assignment(request).await).await?;
        }
        Ok(())
    }

    /// Sends heartbeats until the platform ends the work.
    pub async fn heartbeats(&self) -> End {
        loop {
            sleep(self.interval).await;
            let request = tasks::HeartbeatAssignmentRequest { lease: self.lease.clone(), ..Default::default() };
            match self.workers.clone().heartbeat_assignment(request).await.map_err(End::from) {
                Ok(answer) => match obey(answer.into_inner().directive()) {
                    Ok(()) => {}
                    Err(end) => return end,
                },
                Err(End::Directed(directive)) => return End::Directed(directive),
                // The next heartbeat makes up for a missed one.
                Err(End::Failed(_)) => {}
            }
        }
    }

    /// Saves the state from which another attempt continues, then reports the progress.
    pub async fn save(&self, checkpoint: &Value, processed: usize, total: usize) -> Result<(), End> {
        let checkpoint = Some(documents::value(checkpoint));
        let save = tasks::SaveCheckpointRequest { lease: self.lease.clone(), checkpoint };
        let saved = retry(&save, async |request| self.workers.clone().save_checkpoint(request).await).await?;
        obey(saved.directive())?;
        let progress = tasks::TaskProgress {
            processed: processed as _,
            total: total as _,
            ..Default::default()
        };
        let report = tasks::ReportProgressRequest {
            lease: self.lease.clone(),
            progress: Some(progress),
            request_id: new_request_id(),
        };
        let reported = retry(&report, async |request| self.workers.clone().report_progress(request).await).await?;
        obey(reported.directive())
    }

    /// Completes the task with its output. Heartbeats continue, but do not interrupt the call.
    async fn complete(&self, output: &Value, cost_microcents: i64, attestation_id: String) -> Result<(), End> {
        let request = tasks::CompleteAssignmentRequest {
            lease: self.lease.clone(),
            output: Some(tasks::TaskOutput { full: Some(documents::value(output)), ..Default::default() }),
            usage: Some(tasks::TaskUsage { cost_microcents, ..Default::default() }),
            attestation_id,
            ..Default::default()
        };
        let heartbeats = async {
            self.heartbeats().await;
            pending::<()>().await;
        };
        tokio::select! {
            answer = retry(&request, async |request| self.workers.clone().complete_assignment(request).await) => {
                answer?;
            }
            () = heartbeats => {}
        }
        Ok(())
    }

    /// Completes the task, or abandons it, and prints which of the two happened.
    pub async fn end(&self, done: Result<(Value, i64, String), End>) {
        let ended = match done {
            Ok((output, cost, attestation_id)) => self.complete(&output, cost, attestation_id).await,
            Err(end) => Err(end),
        };
        let left = match ended {
            Ok(()) => return println!("completed {}", self.task.id),
            Err(End::Directed(directive)) => self.leave(directive).await,
            Err(End::Failed(status)) => Err(status),
        };
        match left {
            Ok(()) => println!("stopped {}", self.task.id),
            Err(status) => eprintln!("task {}: {status}", self.task.id),
        }
    }

    /// Leaves work that ends without a result. The checkpoint of the last batch is saved already.
    async fn leave(&self, directive: Directive) -> Result<(), Status> {
        let lease = self.lease.clone();
        if directive == Directive::Suspend {
            let request = tasks::SuspendAssignmentRequest { lease, ..Default::default() };
            retry(&request, async |request| self.workers.clone().suspend_assignment(request).await).await?;
        } else if directive == Directive::Cancel {
            let request = tasks::ReleaseAssignmentRequest { lease };
            retry(&request, async |request| self.workers.clone().release_assignment(request).await).await?;
        }
        Ok(())
    }
}

fn obey(directive: Directive) -> Result<(), End> {
    match directive {
        Directive::Stop | Directive::Suspend | Directive::Cancel => Err(End::Directed(directive)),
        _ => Ok(()),
    }
}
