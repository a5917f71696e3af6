//! Documents that delegators and workers sign: contracts, tokens, revocations and attestations.

use crate::contracts::delegateos::v0::{Capability, SerializedDct};
use crate::contracts::depute::tasks::v1::Task;
use crate::contracts::depute::tokens::v1 as tokens;
use crate::contracts::depute::verifier::v1::attestation_service_client::AttestationServiceClient;
use crate::contracts::depute::verifier::v1::contract_service_client::ContractServiceClient;
use crate::contracts::depute::verifier::v1::{CreateContractRequest, RecordAttestationRequest};
use crate::documents;
use crate::keys::new_request_id;
use crate::platform::{Failure, Grant, Platform, retry};
use crate::{refusal::Refusal, token::Token, token_form};
use serde_json::{Value, json};
use tokens::revocation_service_client::RevocationServiceClient;
use tokens::token_service_client::TokenServiceClient;
use tonic::Status;

/// Records a signed contract: the check that the result has to pass, and the result's maximum cost. Returns the
/// contract's id.
pub async fn create_contract(platform: &Platform, title: &str, schema: &Value, budget: i64) -> Result<String, Status> {
    let contract = documents::contract(&platform.key, title, schema, budget);
    let id = contract.id.clone();
    let request = CreateContractRequest { contract: Some(contract) };
    let service = ContractServiceClient::new(platform.connection());
    retry(&request, async |request| service.clone().create_contract(request).await).await?;
    Ok(id)
}

/// Records a worker's signed statement of its result. Returns the attestation's id; empty for work without a contract.
pub async fn attest(platform: &Platform, task: &Task, output: &Value, cost: i64, millis: i64) -> Result<String, Status> {
    if task.contract_id.is_empty() {
        return Ok(String::new());
    }
    let attestation = documents::attestation(&platform.key, task, output, cost, millis);
    let id = attestation.id.clone();
    let request = RecordAttestationRequest { attestation: Some(attestation) };
    let service = AttestationServiceClient::new(platform.connection());
    retry(&request, async |request| service.clone().record_attestation(request).await).await?;
    Ok(id)
}

/// A root token for the delegator, bound to a contract. `secret` is that of the minting caller; may be empty.
pub async fn mint(
    platform: &Platform,
    secret: String,
    contract_id: &str,
    max_budget_microcents: i64,
    capabilities: Vec<Capability>,
) -> Result<Token, Failure> {
    let service = TokenServiceClient::new(platform.connection_with(Grant::Secret(secret)));
    let request = tokens::MintTokenRequest {
        request_id: new_request_id(),
        delegatee: platform.key.principal(),
        capabilities,
        contract_id: contract_id.to_owned(),
        max_chain_depth: 2,
        max_budget_microcents,
        ..Default::default()
    };
    let answer = retry(&request, async |request| service.clone().mint_token(request).await).await?;
    Ok(Token::parse(&answer.token.unwrap_or_default().token)?)
}

/// A narrower token for the worker, signed here without a call to the platform.
pub fn narrow(platform: &Platform, token: &Token, worker: &str, budget: i64, resource: &str) -> Result<Token, Refusal> {
    let block = json!({
        "attenuator": platform.key.principal(),
        "delegatee": worker,
        "delegationId": documents::new_id("del"),
        "contractId": token.contract_id(),
        "allowedCapabilities": [{"namespace": "llm", "action": "classify", "resource": resource}],
        "maxBudgetMicrocents": budget,
    });
    token.attenuate(&platform.key, block)
}

/// Revokes the last block of a token, and all tokens below it. Returns the number of the revocation.
pub async fn revoke(platform: &Platform, token: &Token) -> Result<i64, Status> {
    let service = RevocationServiceClient::new(platform.connection());
    let id = token.revocation_ids().pop().unwrap_or_default();
    let serialized = SerializedDct { token: token.text.clone(), format: token_form::FORMAT.to_owned() };
    let request = tokens::RevokeTokenRequest {
        entry: Some(documents::revocation(&platform.key, &id)),
        token: Some(serialized),
    };
    let answer = retry(&request, async |request| service.clone().revoke_token(request).await).await?;
    Ok(answer.revocation.map_or(0, |revocation| revocation.sequence))
}

pub fn capability(namespace: &str, action: &str, resource: &str) -> Capability {
    Capability { namespace: namespace.to_owned(), action: action.to_owned(), resource: resource.to_owned() }
}
