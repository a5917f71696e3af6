package dev.depute.examples;

import static dev.depute.examples.TokenForm.map;
import static dev.depute.examples.TokenForm.maps;
import static dev.depute.examples.TokenForm.millis;
import static dev.depute.examples.TokenForm.number;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** A token, which is a chain of signed blocks: vectors/tokens.md. */
record Token(String text, Map<String, Object> authority, List<Map<String, Object>> attenuations, List<Object> signatures) {
  private static final int MAX_LENGTH = 16_000;
  private static final int MAX_NESTING = 8;

  /** The limits after one block of a chain. {@code remaining} is the number of further blocks. */
  record Level(
      String delegatee,
      String contractId,
      String delegationId,
      List<Map<String, Object>> capabilities,
      long maxBudgetMicrocents,
      long expiresAt,
      long chainDepth,
      long remaining) {}

  /** Reads a token text. Throws Refusal for any other form and spelling. */
  static Token parse(String text) {
    if (text.length() > MAX_LENGTH) throw new Refusal("token_too_large");
    String content = utf8(Keys.decode(text));
    Object document;
    try {
      document = Json.parse(content);
    } catch (Refusal refusal) {
      throw new Refusal("malformed_token", "JSON");
    }
    if (nesting(document) > MAX_NESTING) throw new Refusal("malformed_token", "nesting");
    TokenForm.check(document);
    if (!Json.write(document).equals(content)) throw new Refusal("malformed_token", "spelling");
    Map<String, Object> token = map(document);
    return new Token(
        text,
        map(token.get("authority")),
        maps(token.get("attenuations")),
        List.copyOf((List<?>) token.get("signatures")));
  }

  /** A root token that its issuer signs. Throws Refusal. */
  static Token mint(Keys issuer, Map<String, Object> authority) {
    Map<String, Object> signature =
        Map.of(
            "signer", issuer.principal,
            "signature", issuer.signDigestOf(signedValue(authority, List.of())),
            "covers", "authority");
    Token token = of(authority, List.of(), List.of(signature));
    token.levels(Set.of());
    return token;
  }

  /**
   * Returns the token with one more block, which allows less. The method makes no call to the platform.
   *
   * @param block members with the names that vectors/tokens.md uses; absent limits keep their value. Throws Refusal if the
   * block allows more.
   */
  Token attenuate(Keys attenuator, Map<String, Object> block) {
    if (!attenuator.principal.equals(block.get("attenuator"))) throw new Refusal("attenuation_violation", "key");
    List<Map<String, Object>> blocks = new ArrayList<>(attenuations);
    blocks.add(block);
    List<Object> signed = new ArrayList<>(signatures);
    signed.add(
        Map.of(
            "signer", attenuator.principal,
            "signature", attenuator.signDigestOf(signedValue(authority, blocks)),
            "covers", attenuations.size()));
    Token longer = of(authority, blocks, signed);
    longer.levels(Set.of());
    return longer;
  }

  private static Token of(Map<String, Object> authority, List<Map<String, Object>> attenuations, List<Object> signatures) {
    Map<String, Object> document = new TreeMap<>();
    document.put("format", TokenForm.FORMAT);
    document.put("authority", authority);
    document.put("attenuations", attenuations);
    document.put("signatures", signatures);
    return parse(Keys.encode(Keys.bytes(Json.write(document))));
  }

  /** Returns the value that the signature of the last block covers. */
  static Map<String, Object> signedValue(Map<String, Object> authority, List<Map<String, Object>> attenuations) {
    Map<String, Object> value = new TreeMap<>(Map.of("authority", authority));
    if (!attenuations.isEmpty()) value.put("attenuations", attenuations);
    return value;
  }

  /** The principal that may use the token. */
  String holder() {
    return (String) blocks().get(attenuations.size()).get("delegatee");
  }

  String contractId() {
    return (String) blocks().get(attenuations.size()).get("contractId");
  }

  /** The authority, then the attenuations. */
  List<Map<String, Object>> blocks() {
    List<Map<String, Object>> blocks = new ArrayList<>(List.of(authority));
    blocks.addAll(attenuations);
    return blocks;
  }

  /** The id by which each block can be revoked, the authority's first. */
  List<String> revocationIds() {
    return blocks().stream().map(block -> Keys.encode(Keys.blake2b(Keys.bytes(Json.write(block))))).toList();
  }

  /**
   * Returns the limits after each block. Throws Refusal if a block allows more than the block above.
   *
   * @param subContracts pairs: a recorded part of a contract, and the contract
   */
  List<Level> levels(Set<List<String>> subContracts) {
    long remaining = number(authority, "maxChainDepth") - number(authority, "chainDepth");
    if (remaining < 0) throw new Refusal("chain_depth_exceeded");
    Level level =
        new Level(
            (String) authority.get("delegatee"),
            (String) authority.get("contractId"),
            (String) authority.get("delegationId"),
            maps(authority.get("capabilities")),
            number(authority, "maxBudgetMicrocents"),
            millis(authority.get("expiresAt")),
            number(authority, "chainDepth"),
            remaining);
    List<Level> levels = new ArrayList<>(List.of(level));
    int[] steps = {Patterns.MAX_STEPS};
    for (Map<String, Object> block : attenuations) {
      String above = level.contractId;
      level = below(level, block, steps);
      boolean isPart = level.contractId.equals(above) || subContracts.contains(List.of(level.contractId, above));
      if (!isPart) throw new Refusal("contract_mismatch", "contractId");
      levels.add(level);
    }
    return levels;
  }

  private static Level below(Level above, Map<String, Object> block, int[] steps) {
    demandNarrower(block.get("attenuator").equals(above.delegatee), "attenuator");
    var capabilities =
        block.containsKey("allowedCapabilities") ? maps(block.get("allowedCapabilities")) : above.capabilities;
    if (block.containsKey("allowedCapabilities")) {
      for (Map<String, Object> child : capabilities) {
        boolean isGranted = above.capabilities.stream().anyMatch(one -> Patterns.isSubset(child, one, steps));
        demandNarrower(isGranted, "allowedCapabilities");
      }
    }
    long budget =
        block.containsKey("maxBudgetMicrocents") ? number(block, "maxBudgetMicrocents") : above.maxBudgetMicrocents;
    demandNarrower(budget <= above.maxBudgetMicrocents, "maxBudgetMicrocents");
    long expiresAt = block.containsKey("expiresAt") ? millis(block.get("expiresAt")) : above.expiresAt;
    demandNarrower(expiresAt <= above.expiresAt, "expiresAt");
    if (above.remaining == 0) throw new Refusal("chain_depth_exceeded");
    long remaining = block.containsKey("maxChainDepth") ? number(block, "maxChainDepth") : above.remaining - 1;
    demandNarrower(remaining < above.remaining, "maxChainDepth");
    return new Level(
        (String) block.get("delegatee"),
        (String) block.get("contractId"),
        (String) block.get("delegationId"),
        capabilities,
        budget,
        expiresAt,
        above.chainDepth + 1,
        remaining);
  }

  private static void demandNarrower(boolean holds, String fault) {
    if (!holds) throw new Refusal("attenuation_violation", fault);
  }

  private static int nesting(Object value) {
    if (value instanceof Map<?, ?> members) return 1 + members.values().stream().mapToInt(Token::nesting).max().orElse(0);
    if (value instanceof List<?> items) return 1 + items.stream().mapToInt(Token::nesting).max().orElse(0);
    return 0;
  }

  /** Reads UTF-8 without replacing bytes. */
  static String utf8(byte[] bytes) {
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    } catch (CharacterCodingException error) {
      throw new Refusal("malformed_token", "UTF-8");
    }
  }
}
