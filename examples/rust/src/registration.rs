//! The record of an agent in the registry.

use crate::contracts::depute::registry::v1 as registry;
use crate::contracts::nekte::v1::CapabilityFull;
use crate::keys::new_request_id;
use crate::platform::{Platform, retry};
use registry::agent_service_client::AgentServiceClient;
use tonic::Status;

/// Registers an agent under the caller's key, with one capability. Workers in other languages register the
/// same agent.
pub async fn register(platform: &Platform, agent_id: &str, capability: CapabilityFull) -> Result<(), Status> {
    let agents = AgentServiceClient::new(platform.connection());
    let agent = registry::Agent {
        id: agent_id.to_owned(),
        principal: platform.key.principal(),
        display_name: "Sentiment".to_owned(),
        description: "Scores the sentiment of texts.".to_owned(),
        version: "1.0.0".to_owned(),
        ..Default::default()
    };
    let registration = registry::RegisterAgentRequest {
        request_id: new_request_id(),
        agent: Some(agent),
        ..Default::default()
    };
    retry(&registration, async |request| agents.clone().register_agent(request).await).await?;
    let publication = registry::PublishCapabilitiesRequest {
        request_id: new_request_id(),
        agent_id: agent_id.to_owned(),
        capabilities: vec![capability],
    };
    retry(&publication, async |request| agents.clone().publish_capabilities(request).await).await?;
    Ok(())
}
