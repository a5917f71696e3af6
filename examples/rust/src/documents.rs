//! Signed documents, each as the canonical JSON that is signed and as the message that is sent.

use crate::contracts::delegateos::v0 as dct;
use crate::contracts::depute::tasks::v1::Task;
use crate::keys::{self, Keypair};
use prost_types::{ListValue, Struct, Timestamp, value::Kind};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

/// A contract whose result has to match a schema, for one hour.
pub fn contract(issuer: &Keypair, title: &str, schema: &Value, max_budget_microcents: i64) -> dct::TaskContract {
    let mut message = dct::TaskContract {
        id: new_id("ct"),
        version: "0.1".to_owned(),
        issuer: issuer.principal(),
        created_at: time_after(Duration::ZERO),
        task: Some(dct::TaskSpec {
            title: title.to_owned(),
            description: String::new(),
            inputs: Some(Struct::default()),
            output_schema: Some(value(&Value::Bool(true))),
        }),
        verification: Some(dct::VerificationSpec {
            method: dct::VerificationMethod::SchemaMatch.into(),
            schema: Some(value(schema)),
            ..Default::default()
        }),
        constraints: Some(dct::TaskConstraints {
            max_budget_microcents,
            deadline: time_after(Duration::from_secs(3600)),
            max_chain_depth: 2,
            required_capabilities: Vec::new(),
        }),
        signature: String::new(),
    };
    message.signature = issuer.sign_digest_of(&json!({
        "id": message.id,
        "version": message.version,
        "issuer": message.issuer,
        "createdAt": message.created_at,
        "task": { "title": title, "description": "", "inputs": {}, "outputSchema": true },
        "verification": { "method": "schema_match", "schema": schema },
        "constraints": {
            "maxBudgetMicrocents": max_budget_microcents,
            "deadline": message.constraints.as_ref().map(|limits| &limits.deadline),
            "maxChainDepth": 2,
            "requiredCapabilities": [],
        },
    }));
    message
}

/// The worker's statement of an output and its cost: vectors/attestations.md.
pub fn attestation(worker: &Keypair, task: &Task, output: &Value, cost_microcents: i64, duration_ms: i64) -> dct::Attestation {
    let mut message = dct::Attestation {
        id: new_id("att"),
        version: "0.1".to_owned(),
        contract_id: task.contract_id.clone(),
        delegation_id: task.delegation_id.clone(),
        principal: worker.principal(),
        created_at: time_after(Duration::ZERO),
        r#type: dct::AttestationType::Completion.into(),
        result: Some(dct::AttestationResult {
            success: true,
            output: Some(value(output)),
            cost_microcents,
            duration_ms,
            ..Default::default()
        }),
        child_attestations: Vec::new(),
        signature: String::new(),
    };
    message.signature = worker.sign_digest_of(&json!({
        "id": message.id,
        "version": message.version,
        "contractId": message.contract_id,
        "delegationId": message.delegation_id,
        "principal": message.principal,
        "createdAt": message.created_at,
        "type": "completion",
        "childAttestations": [],
        "result": {
            "success": true,
            "output": output,
            "costMicrocents": cost_microcents,
            "durationMs": duration_ms,
        },
    }));
    message
}

/// The revocation of a block, and of all delegations below it.
pub fn revocation(revoker: &Keypair, revocation_id: &str) -> dct::RevocationEntry {
    let mut message = dct::RevocationEntry {
        revocation_id: revocation_id.to_owned(),
        revoked_by: revoker.principal(),
        revoked_at: time_after(Duration::ZERO),
        scope: dct::RevocationScope::Chain.into(),
        signature: String::new(),
    };
    message.signature = revoker.sign_digest_of(&json!({
        "revocationId": message.revocation_id,
        "revokedBy": message.revoked_by,
        "revokedAt": message.revoked_at,
        "scope": "chain",
    }));
    message
}

/// A new id of a kind: `ct`, `del` or `att`.
pub fn new_id(kind: &str) -> String {
    let digits: String = keys::random::<6>().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{kind}_{digits}")
}

/// The text of a time from now, in whole milliseconds.
fn time_after(wait: Duration) -> String {
    let mut time = Timestamp::from(SystemTime::now() + wait);
    time.nanos -= time.nanos % 1_000_000;
    time.to_string()
}

/// The message of a JSON value.
pub fn value(plain: &Value) -> prost_types::Value {
    let kind = match plain {
        Value::Null => Kind::NullValue(0),
        Value::Bool(flag) => Kind::BoolValue(*flag),
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => Kind::StringValue(text.clone()),
        Value::Array(items) => Kind::ListValue(ListValue { values: items.iter().map(value).collect() }),
        Value::Object(members) => {
            let fields = members.iter().map(|(name, member)| (name.clone(), value(member))).collect();
            Kind::StructValue(Struct { fields })
        }
    };
    prost_types::Value { kind: Some(kind) }
}

/// The JSON value of a message.
pub fn plain(message: &prost_types::Value) -> Value {
    match &message.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(flag)) => (*flag).into(),
        Some(Kind::NumberValue(number)) => (*number).into(),
        Some(Kind::StringValue(text)) => text.as_str().into(),
        Some(Kind::ListValue(list)) => list.values.iter().map(plain).collect(),
        Some(Kind::StructValue(members)) => {
            Value::Object(members.fields.iter().map(|(name, member)| (name.clone(), plain(member))).collect())
        }
    }
}
