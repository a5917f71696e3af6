package dev.depute.examples;

import dev.depute.nekte.v1.CapabilityFull;
import dev.depute.registry.v1.Agent;
import dev.depute.registry.v1.AgentServiceGrpc;
import dev.depute.registry.v1.PublishCapabilitiesRequest;
import dev.depute.registry.v1.RegisterAgentRequest;
import java.util.UUID;

/** The record of an agent in the registry. */
final class Registration {
  private Registration() {}

  /** Registers an agent under a key, with one capability. Workers in other languages register the same agent. */
  static void register(Platform platform, Keys key, String agentId, CapabilityFull capability) {
    var agents = AgentServiceGrpc.newBlockingStub(platform.channel);
    var agent =
        Agent.newBuilder()
            .setId(agentId)
            .setPrincipal(key.principal)
            .setDisplayName("Sentiment")
            .setDescription("Scores the sentiment of texts.")
            .setVersion("1.0.0");
    var registration = RegisterAgentRequest.newBuilder().setRequestId(newId()).setAgent(agent).build();
    platform.retry(() -> agents.registerAgent(registration));
    var publication =
        PublishCapabilitiesRequest.newBuilder()
            .setRequestId(newId())
            .setAgentId(agentId)
            .addCapabilities(capability)
            .build();
    platform.retry(() -> agents.publishCapabilities(publication));
  }

  private static String newId() {
    return UUID.randomUUID().toString();
  }
}
