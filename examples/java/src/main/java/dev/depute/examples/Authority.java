package dev.depute.examples;

import dev.depute.delegateos.v0.Capability;
import dev.depute.delegateos.v0.SerializedDCT;
import dev.depute.tokens.v1.MintTokenRequest;
import dev.depute.tokens.v1.RevocationServiceGrpc;
import dev.depute.tokens.v1.RevokeTokenRequest;
import dev.depute.tokens.v1.TokenServiceGrpc;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** The tokens of a delegator. */
record Authority(Platform platform, Keys key) {
  /** A root token for the delegator, bound to a contract. {@code secret} is that of the minting caller; may be empty. */
  Token mint(String secret, String contractId, long maxBudgetMicrocents, List<Capability> capabilities) {
    var request =
        MintTokenRequest.newBuilder()
            .setRequestId(UUID.randomUUID().toString())
            .setDelegatee(key.principal)
            .addAllCapabilities(capabilities)
            .setContractId(contractId)
            .setMaxChainDepth(2)
            .setMaxBudgetMicrocents(maxBudgetMicrocents)
            .build();
    var tokens = TokenServiceGrpc.newBlockingStub(platform.channel).withCallCredentials(platform.bearer(secret));
    return Token.parse(platform.retry(() -> tokens.mintToken(request)).getToken().getToken());
  }

  /** A narrower token for the worker, signed here without a call to the platform. */
  Token narrow(Token token, String worker, long maxBudgetMicrocents, String resource) {
    var allowed = Map.of("namespace", "llm", "action", "classify", "resource", resource);
    return token.attenuate(
        key,
        Map.of(
            "attenuator", key.principal,
            "delegatee", worker,
            "delegationId", Documents.newId("del"),
            "contractId", token.contractId(),
            "allowedCapabilities", List.of(allowed),
            "maxBudgetMicrocents", maxBudgetMicrocents));
  }

  /** Revokes the last block of a token, and all tokens below it. Returns the number of the revocation. */
  long revoke(Token token) {
    List<String> ids = token.revocationIds();
    var serialized = SerializedDCT.newBuilder().setToken(token.text()).setFormat(TokenForm.FORMAT);
    var request =
        RevokeTokenRequest.newBuilder()
            .setEntry(Documents.revocation(key, ids.get(ids.size() - 1)))
            .setToken(serialized)
            .build();
    var revocations = RevocationServiceGrpc.newBlockingStub(platform.channel);
    return platform.retry(() -> revocations.revokeToken(request)).getRevocation().getSequence();
  }

  static Capability capability(String namespace, String action, String resource) {
    return Capability.newBuilder().setNamespace(namespace).setAction(action).setResource(resource).build();
  }
}
