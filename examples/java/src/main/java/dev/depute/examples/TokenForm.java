package dev.depute.examples;

import java.time.DateTimeException;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/** The form of a token: section Form of vectors/tokens.md. Each check throws Refusal. */
final class TokenForm {
  static final String FORMAT = "delegateos-sjt-v1";
  static final String NO_PARENT = "del_000000000000";

  private static final double MAX_INTEGER = 9007199254740991.0;
  private static final int MAX_RESOURCE_LENGTH = 1024;
  private static final Pattern TIME =
      Pattern.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{3})?Z");

  private static final Map<String, Consumer<Object>> CAPABILITY =
      Map.of(
          "namespace", text("[a-z0-9_.:-]{1,64}"),
          "action", text("[a-z0-9_.:-]{1,64}"),
          "resource", value -> demand(value instanceof String, "resource"));
  private static final Consumer<Object> CAPABILITIES =
      value -> items(value, 64, TokenForm::checkCapability);
  private static final Map<String, Consumer<Object>> AUTHORITY =
      Map.ofEntries(
          Map.entry("issuer", TokenForm::checkPrincipal),
          Map.entry("delegatee", TokenForm::checkPrincipal),
          Map.entry("capabilities", CAPABILITIES),
          Map.entry("contractId", text("ct_[0-9a-f]{12}")),
          Map.entry("delegationId", TokenForm::checkDelegation),
          Map.entry("parentDelegationId", text("del_[0-9a-f]{12}")),
          Map.entry("chainDepth", TokenForm::checkInteger),
          Map.entry("maxChainDepth", TokenForm::checkInteger),
          Map.entry("maxBudgetMicrocents", TokenForm::checkInteger),
          Map.entry("expiresAt", TokenForm::millis),
          Map.entry("issuedAt", TokenForm::millis));
  private static final Map<String, Consumer<Object>> ATTENUATION =
      Map.of(
          "attenuator", TokenForm::checkPrincipal,
          "delegatee", TokenForm::checkPrincipal,
          "delegationId", TokenForm::checkDelegation,
          "contractId", text("ct_[0-9a-f]{12}"),
          "allowedCapabilities", CAPABILITIES,
          "maxBudgetMicrocents", TokenForm::checkInteger,
          "expiresAt", TokenForm::millis,
          "maxChainDepth", TokenForm::checkInteger);
  private static final Set<String> OPTIONAL =
      Set.of("allowedCapabilities", "maxBudgetMicrocents", "expiresAt", "maxChainDepth");
  private static final Map<String, Consumer<Object>> SIGNATURE =
      Map.of(
          "signer", TokenForm::checkPrincipal,
          "signature", value -> demand(Keys.decode(string(value)).length == 64, "signature"),
          "covers", value -> demand(value.equals("authority") || isInteger(value), "covers"));
  private static final Map<String, Consumer<Object>> TOKEN =
      Map.of(
          "format", text(FORMAT),
          "authority", value -> members(value, AUTHORITY, Set.of()),
          "attenuations", value -> items(value, 32, one -> members(one, ATTENUATION, OPTIONAL)),
          "signatures", value -> items(value, 33, one -> members(one, SIGNATURE, Set.of())));

  private TokenForm() {}

  /** Checks a whole token, and the rules between its members. */
  static void check(Object document) {
    members(document, TOKEN, Set.of());
    Map<String, Object> token = map(document);
    Map<String, Object> authority = map(token.get("authority"));
    Object parent = authority.get("parentDelegationId");
    boolean isRoot = parent.equals(NO_PARENT);
    demand(isRoot == (number(authority, "chainDepth") == 0), "parentDelegationId");
    demand(millis(authority.get("expiresAt")) > millis(authority.get("issuedAt")), "expiresAt");
    Set<Object> ids = new HashSet<>(Set.of(parent));
    demand(ids.add(authority.get("delegationId")), "delegationId");
    for (Map<String, Object> block : maps(token.get("attenuations"))) {
      demand(ids.add(block.get("delegationId")), "delegationId");
    }
  }

  private static void checkCapability(Object value) {
    members(value, CAPABILITY, Set.of());
    Map<String, Object> capability = map(value);
    String resource = string(capability.get("resource"));
    if (resource.length() > MAX_RESOURCE_LENGTH) throw new Refusal("token_too_large", "resource");
    Patterns.pattern(resource, string(capability.get("namespace")));
  }

  private static void checkDelegation(Object value) {
    text("del_[0-9a-f]{12}").accept(value);
    demand(!value.equals(NO_PARENT), "delegationId");
  }

  private static void checkPrincipal(Object value) {
    Keys.keyOf(string(value));
  }

  private static void checkInteger(Object value) {
    demand(isInteger(value), "integer");
  }

  static boolean isInteger(Object value) {
    if (!(value instanceof Number)) return false;
    double number = ((Number) value).doubleValue();
    return number >= 0 && number <= MAX_INTEGER && number == Math.rint(number);
  }

  /** Milliseconds since 1970 of a time. */
  static long millis(Object value) {
    String text = string(value);
    demand(TIME.matcher(text).matches(), "time");
    try {
      return LocalDateTime.parse(text.substring(0, text.length() - 1)).toInstant(ZoneOffset.UTC).toEpochMilli();
    } catch (DateTimeException error) {
      throw new Refusal("malformed_token", "time");
    }
  }

  private static Consumer<Object> text(String pattern) {
    Pattern compiled = Pattern.compile(pattern);
    return value -> demand(compiled.matcher(string(value)).matches(), pattern);
  }

  private static void items(Object value, int most, Consumer<Object> check) {
    demand(value instanceof List, "array");
    if (((List<?>) value).size() > most) throw new Refusal("token_too_large");
    ((List<?>) value).forEach(check);
  }

  private static void members(Object value, Map<String, Consumer<Object>> checks, Set<String> optional) {
    Map<String, Object> members = map(value);
    for (String name : members.keySet()) demand(checks.containsKey(name), "unknown member");
    for (var check : checks.entrySet()) {
      Object member = members.get(check.getKey());
      if (member == null && optional.contains(check.getKey()) && !members.containsKey(check.getKey())) continue;
      demand(member != null, check.getKey());
      check.getValue().accept(member);
    }
  }

  static String string(Object value) {
    demand(value instanceof String, "text");
    return (String) value;
  }

  static long number(Map<String, Object> block, String name) {
    return ((Number) block.get(name)).longValue();
  }

  @SuppressWarnings("unchecked")
  static Map<String, Object> map(Object value) {
    demand(value instanceof Map, "object");
    return new TreeMap<>((Map<String, Object>) value);
  }

  static List<Map<String, Object>> maps(Object value) {
    return ((List<?>) value).stream().map(TokenForm::map).toList();
  }

  private static void demand(boolean holds, String fault) {
    if (!holds) throw new Refusal("malformed_token", fault);
  }
}
