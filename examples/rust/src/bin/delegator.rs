//! Delegates the scoring of 500 texts under a narrowed token. README.md lists its modes and settings.

use depute_examples::contracts::depute::registry::v1::{GetAgentRequest, agent_service_client::AgentServiceClient};
use depute_examples::contracts::depute::tasks::v1::{self as tasks, task_service_client::TaskServiceClient};
use depute_examples::contracts::depute::verifier::v1::{VerifyAttestationRequest, verify_attestation_request::Subject};
use depute_examples::contracts::depute::verifier::v1::attestation_service_client::AttestationServiceClient;
use depute_examples::platform::{Failure, Grant, Platform, reason_of, retry, setting};
use depute_examples::{authority, documents, events, json, keys};
use prost_types::Duration;
use serde_json::json;

const BUDGET: i64 = 1_000_000;
const TEXTS: [&str; 4] = ["A wonderful, useful tool.", "This is terrible.", "It takes two arguments.", "Broken."];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mode = std::env::args().nth(1).unwrap_or("complete".to_owned());
    let platform = Platform::from_settings("delegator.key")?;
    let agent_id = setting("DEPUTE_AGENT", "sentiment");
    let schema = json!({"type": "object", "properties": {"count": {"const": 500}}, "required": ["count"]});
    let contract_id = authority::create_contract(&platform, "500 texts", &schema, BUDGET).await?;
    let delegate = authority::capability("depute:tasks", "delegate", &format!("{agent_id}/*"));
    let rights = vec![delegate, authority::capability("llm", "classify", "**")];
    let token = authority::mint(&platform, setting("DEPUTE_SECRET", ""), &contract_id, BUDGET, rights).await?;
    let agents = AgentServiceClient::new(platform.connection());
    let lookup = GetAgentRequest { agent_id: agent_id.clone(), ..Default::default() };
    let agent = retry(&lookup, async |request| agents.clone().get_agent(request).await).await?.agent;
    let worker = agent.unwrap_or_default().principal;
    let narrowed = authority::narrow(&platform, &token, &worker, BUDGET / 2, "texts/readme/**")?;
    let heartbeat = Some(Duration { seconds: 5, nanos: 0 });
    let initial_backoff = Some(Duration { seconds: 0, nanos: 100_000_000 });
    let draft = tasks::TaskDraft {
        agent_id,
        capability_id: "sentiment".to_owned(),
        input: Some(documents::value(&json!({"texts": TEXTS.repeat(125)}))),
        contract_id,
        worker_token: narrowed.text,
        limits: Some(tasks::TaskLimits { heartbeat, ..Default::default() }),
        retry: Some(tasks::RetryPolicy { max_attempts: 3, initial_backoff, ..Default::default() }),
        ..Default::default()
    };
    let client = TaskServiceClient::new(platform.connection());
    let delegation = TaskServiceClient::new(platform.connection_with(Grant::Token(token.text.clone())));
    let create = async |request| delegation.clone().create_task(request).await;
    let mut creation = tasks::CreateTaskRequest { request_id: keys::new_request_id(), draft: Some(draft), ..Default::default() };
    let task_id = retry(&creation, create).await?.task.unwrap_or_default().id;
    println!("task {task_id}");
    let interfere = async || {
        let cancellation = tasks::CancelTaskRequest { task_id: task_id.clone(), ..Default::default() };
        match mode.as_str() {
            "cancel" => retry(&cancellation, async |request| client.clone().cancel_task(request).await).await.map(drop),
            "revoke" => authority::revoke(&platform, &token).await.map(drop),
            _ => Ok(()),
        }
    };
    events::print(&platform, &task_id, interfere).await?;
    let query = tasks::GetTaskRequest { task_id: task_id.clone(), ..Default::default() };
    let task = retry(&query, async |request| client.clone().get_task(request).await).await?.task.unwrap_or_default();
    let status = task.status().as_str_name().replace("TASK_STATUS_", "").to_lowercase();
    println!("ended {status}");
    if status == "completed" {
        let output = task.output.unwrap_or_default().full.unwrap_or_default();
        println!("result {}", json::write(&documents::plain(&output)));
        let has_passed = task.verification.unwrap_or_default().passed;
        println!("checked {}", if has_passed { "passed" } else { "failed" });
        let attestations = AttestationServiceClient::new(platform.connection());
        let subject = Some(Subject::AttestationId(task.attestation_id));
        let question = VerifyAttestationRequest { subject, ..Default::default() };
        let answer = retry(&question, async |request| attestations.clone().verify_attestation(request).await).await?;
        println!("attestation {}", if answer.valid { "valid" } else { "invalid" });
        println!("revoked {}", authority::revoke(&platform, &token).await?);
    }
    if mode != "cancel" {
        creation.request_id = keys::new_request_id();
        let reason = retry(&creation, create).await.err().map_or(String::new(), |status| reason_of(&status));
        println!("refused {reason}");
    }
    Ok(())
}
