package dev.depute.examples;

import static dev.depute.examples.TokenForm.maps;
import static dev.depute.examples.TokenForm.millis;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** Verifies a token that comes without a holder proof: {@code verify} of vectors/tokens.md. Each check throws Refusal. */
final class Verifier {
  private static final long MAX_LIFETIME_MS = 24L * 60 * 60 * 1000;
  private static final long MAX_SKEW_MS = 30_000;

  private final Token token;
  private final Context context;
  private final List<String> ids;

  /**
   * The facts against which a verifier checks a token. Absent members are null or empty.
   *
   * @param now in milliseconds since 1970
   * @param spentMicrocents the spend of each block, by revocation id
   * @param request the requested capability
   * @param requiredCapabilities pairs {@code namespace:action} of the contract
   * @param subContracts pairs: a recorded part of a contract, and the contract
   */
  record Context(
      Set<String> trustedRoots,
      long now,
      Map<String, Long> spentMicrocents,
      List<Map<String, Object>> revocations,
      Map<String, Object> request,
      String contractId,
      List<String> requiredCapabilities,
      Set<List<String>> subContracts,
      Long maxChainDepth) {}

  /**
   * The limits that a verified token grants: those of its last block, and the smallest remaining budget of all
   * blocks.
   */
  record Scope(Token token, Token.Level last, long remainingBudgetMicrocents) {}

  private Verifier(Token token, Context context) {
    this.token = token;
    this.context = context;
    ids = token.revocationIds();
  }

  static Scope verify(String text, Context context) {
    Verifier verifier = new Verifier(Token.parse(text), context);
    verifier.checkRevocations();
    verifier.checkSignatures();
    List<Token.Level> levels = verifier.token.levels(context.subContracts);
    Token.Level last = levels.get(levels.size() - 1);
    demand(context.maxChainDepth == null || last.chainDepth() <= context.maxChainDepth, "chain_depth_exceeded");
    verifier.checkTimes(levels.get(0).expiresAt(), last.expiresAt());
    long rest = verifier.rest(levels);
    demand(rest > 0, "budget_exceeded");
    verifier.checkContract(last);
    if (context.request != null) verifier.checkRequest(last);
    return new Scope(verifier.token, last, rest);
  }

  private static String signer(Map<String, Object> block) {
    return (String) block.getOrDefault("attenuator", block.get("issuer"));
  }

  /**
   * Step 2 of {@code verify}. A revocation counts if its signer signed the block or one above, or is the block's
   * delegatee.
   */
  private void checkRevocations() {
    Set<Object> entitled = new HashSet<>();
    for (int at = 0; at < ids.size(); at++) {
      Map<String, Object> block = token.blocks().get(at);
      entitled.add(signer(block));
      for (Map<String, Object> entry : context.revocations) {
        Object revoker = entry.get("revokedBy");
        boolean counts = entitled.contains(revoker) || revoker.equals(block.get("delegatee"));
        if (!counts || !ids.get(at).equals(entry.get("revocationId"))) continue;
        Map<String, Object> signed = new TreeMap<>(entry);
        signed.remove("signature");
        demand(!isSigned((String) revoker, signed, entry.get("signature")), "revoked");
      }
    }
  }

  /** Step 3 of {@code verify}. */
  private void checkSignatures() {
    List<Map<String, Object>> entries = maps(token.signatures());
    demand(entries.size() == ids.size(), "invalid_signature");
    demand(context.trustedRoots.contains(signer(token.authority())), "invalid_signature");
    for (int at = 0; at < ids.size(); at++) {
      Map<String, Object> entry = entries.get(at);
      String signer = signer(token.blocks().get(at));
      Object covers = at == 0 ? "authority" : Double.valueOf(at - 1);
      Object signed = Token.signedValue(token.authority(), token.attenuations().subList(0, at));
      boolean isMeant = signer.equals(entry.get("signer")) && covers.equals(entry.get("covers"));
      demand(isMeant && isSigned(signer, signed, entry.get("signature")), "invalid_signature");
    }
  }

  /** Whether a principal signed the digest of a value. */
  private static boolean isSigned(String principal, Object value, Object signature) {
    byte[] digest = Keys.blake2b(Keys.bytes(Json.write(value)));
    try {
      return Keys.verify(Keys.decode((String) signature), digest, Keys.keyOf(principal));
    } catch (Refusal refusal) {
      return false;
    }
  }

  /** Step 6 of {@code verify}. */
  private void checkTimes(long rootExpiresAt, long expiresAt) {
    long issuedAt = millis(token.authority().get("issuedAt"));
    demand(issuedAt <= context.now + MAX_SKEW_MS && rootExpiresAt - issuedAt <= MAX_LIFETIME_MS, "malformed_token");
    demand(context.now <= expiresAt, "expired");
  }

  /** Returns the least remaining budget of all blocks. (step 7 of {@code verify}) */
  private long rest(List<Token.Level> levels) {
    List<Long> rests = new ArrayList<>();
    for (int at = 0; at < ids.size(); at++) {
      rests.add(levels.get(at).maxBudgetMicrocents() - context.spentMicrocents.getOrDefault(ids.get(at), 0L));
    }
    return rests.stream().mapToLong(Long::longValue).min().orElse(0);
  }

  /** Step 8 of {@code verify}. */
  private void checkContract(Token.Level last) {
    demand(context.contractId == null || context.contractId.equals(last.contractId()), "contract_mismatch");
    for (String pair : context.requiredCapabilities) {
      int colon = pair.lastIndexOf(':');
      String action = pair.substring(colon + 1);
      boolean isGranted =
          last.capabilities().stream()
              .filter(one -> one.get("action").equals(action))
              .anyMatch(one -> one.get("namespace").equals(pair.substring(0, Math.max(colon, 0))));
      demand(isGranted, "contract_mismatch");
    }
  }

  /** Step 9 of {@code verify}. */
  private void checkRequest(Token.Level last) {
    String namespace = (String) context.request.get("namespace");
    Patterns asked = Patterns.resource((String) context.request.get("resource"), namespace);
    boolean isGranted =
        last.capabilities().stream()
            .filter(one -> one.get("namespace").equals(namespace))
            .filter(one -> one.get("action").equals(context.request.get("action")))
            .anyMatch(one -> Patterns.pattern((String) one.get("resource"), namespace).matches(asked));
    demand(isGranted, "capability_not_granted");
  }

  private static void demand(boolean holds, String denial) {
    if (!holds) throw new Refusal(denial);
  }
}
