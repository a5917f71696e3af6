package dev.depute.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Runs the cases under vectors/ with the code of these examples. */
class VectorsTest {
  private static final Path VECTORS = Path.of(System.getProperty("vectors", "../../vectors"));
  private static final HexFormat HEX = HexFormat.of();

  /** Answers one case: the expected result, or a Refusal. */
  private interface Answer {
    Object of(Map<String, Object> input);
  }

  @TestFactory
  Stream<DynamicTest> canonicalJson() {
    return cases(
        "canonical-json",
        Map.of(
            "canonicalize", in -> canonical(Json.parse(text(in, "json"))),
            "version-hash", in -> versionHash(in),
            "names-version", in -> Map.of("names", names(text(in, "hash"), text(in, "digestHex")))));
  }

  @TestFactory
  Stream<DynamicTest> keysAndPrincipals() {
    return cases(
        "keys-and-principals",
        Map.of(
            "decode-base64url", in -> Map.of("hex", hex(Keys.decode(text(in, "text")))),
            "keypair", in -> keypair(keys(in)),
            "sign", in -> Map.of("signature", Keys.encode(keys(in).sign(bytes(in, "messageHex")))),
            "verify",
                in ->
                    Map.of(
                        "valid",
                        Keys.verify(bytes(in, "signatureHex"), bytes(in, "messageHex"), bytes(in, "publicKeyHex"))),
            "principal",
                in -> {
                  byte[] key = Keys.keyOf(text(in, "principal"));
                  return Map.of("publicKeyHex", hex(key), "admissible", Keys.isAdmissible(key));
                },
            "blake2b",
                in ->
                    Map.of(
                        "unkeyedHex", hex(Keys.blake2b(bytes(in, "dataHex"))),
                        "keyedHex", hex(Keys.blake2b(bytes(in, "dataHex"), bytes(in, "keyHex"))))));
  }

  @TestFactory
  Stream<DynamicTest> tokens() {
    return cases(
        "tokens",
        Map.of(
            "mint", in -> signed(Token.mint(keys(in), member(in, "authority"))),
            "attenuate", in -> signed(Token.parse(text(in, "token")).attenuate(keys(in), member(in, "block"))),
            "parse", in -> parsed(Token.parse(text(in, "token"))),
            "verify", in -> verified(Verifier.verify(text(in, "token"), context(member(in, "context")))),
            "match",
                in -> {
                  Patterns pattern = Patterns.pattern(text(in, "pattern"), text(in, "namespace"));
                  Patterns resource = Patterns.resource(text(in, "resource"), text(in, "namespace"));
                  return Map.of("matches", pattern.matches(resource));
                },
            "subset",
                in -> {
                  int[] steps = {Patterns.MAX_STEPS};
                  return Map.of("isSubset", Patterns.isSubset(member(in, "child"), member(in, "parent"), steps));
                }));
  }

  @TestFactory
  Stream<DynamicTest> holderProofs() {
    return cases(
        "holder-proofs",
        Map.of(
            "target", in -> target(in),
            "create", in -> created(in),
            "arguments-digest", in -> Map.of("ard", Proof.digest(Json.write(in.get("arguments")))),
            "check", in -> accepted(Proof.check((String) in.get("proof"), call(member(in, "expected")))),
            "same-target", in -> Map.of("isSame", Targets.isSame(text(in, "claimed"), text(in, "htu"))),
            "check-in-order", in -> inOrder(in)));
  }

  private static Stream<DynamicTest> cases(String file, Map<String, Answer> answers) {
    Map<String, Object> document;
    try {
      document = map(Json.parse(Files.readString(VECTORS.resolve(file + ".json"))));
    } catch (java.io.IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
    return TokenForm.maps(document.get("cases")).stream()
        .map(one -> DynamicTest.dynamicTest(text(one, "name"), () -> check(one, answers)));
  }

  private static void check(Map<String, Object> one, Map<String, Answer> answers) {
    Object answer;
    Map<String, Object> refused = new TreeMap<>();
    try {
      answer = answers.get(text(one, "operation")).of(member(one, "input"));
    } catch (Refusal refusal) {
      answer = null;
      refused.put("refusal", refusal.denial);
      if (one.containsKey("fault")) refused.put("fault", refusal.fault);
    }
    Map<String, Object> expected = new TreeMap<>(one);
    expected.keySet().retainAll(List.of("refusal", "fault"));
    assertEquals(expected, refused);
    assertEquals(Json.write(one.get("expected")), Json.write(answer));
  }

  private static Object canonical(Object value) {
    String canonical = Json.write(value);
    byte[] bytes = Keys.bytes(canonical);
    return Map.of(
        "canonical", canonical,
        "utf8Hex", hex(bytes),
        "sha256Hex", hex(Keys.sha256(bytes)),
        "blake2b256Hex", hex(Keys.blake2b(bytes)));
  }

  private static Object versionHash(Map<String, Object> schemas) {
    String digest = hex(Keys.sha256(Keys.bytes(Json.write(schemas))));
    return Map.of("digestHex", digest, "hash8", digest.substring(0, 8), "hash16", digest.substring(0, 16));
  }

  private static boolean names(String hash, String digest) {
    return hash.matches("[0-9a-fA-F]{8,64}") && digest.startsWith(hash.toLowerCase());
  }

  private static Object keypair(Keys keys) {
    return Map.of(
        "publicKeyHex", hex(Keys.decode(keys.principal)),
        "principal", keys.principal,
        "thumbprint", Keys.thumbprint(keys.principal));
  }

  private static Object signed(Token token) {
    String text = Json.write(Token.signedValue(token.authority(), token.attenuations()));
    Map<String, Object> answer = new TreeMap<>();
    answer.put("digestHex", hex(Keys.blake2b(Keys.bytes(text))));
    answer.put("signature", map(token.signatures().get(token.attenuations().size())).get("signature"));
    answer.put("token", token.text());
    answer.put("revocationIds", token.revocationIds());
    if (token.attenuations().isEmpty()) answer.put("signedText", text);
    return answer;
  }

  private static Object parsed(Token token) {
    return Map.of("revocationIds", token.revocationIds());
  }

  private static Verifier.Context context(Map<String, Object> in) {
    Map<String, Long> spent = new TreeMap<>();
    if (in.containsKey("spentMicrocents")) member(in, "spentMicrocents").forEach((id, sum) -> spent.put(id, whole(sum)));
    return new Verifier.Context(
        Set.copyOf(VectorsTest.<String>items(in, "trustedRoots")),
        whole(in.get("now")),
        spent,
        TokenForm.maps(items(in, "revocations")),
        in.containsKey("request") ? member(in, "request") : null,
        (String) in.get("contractId"),
        items(in, "requiredCapabilities"),
        Set.copyOf(VectorsTest.<List<String>>items(in, "subContracts")),
        in.containsKey("maxChainDepth") ? whole(in.get("maxChainDepth")) : null);
  }

  private static Object verified(Verifier.Scope scope) {
    Token.Level last = scope.last();
    Map<String, Object> members = new TreeMap<>();
    members.put("capabilities", last.capabilities());
    members.put("remainingBudgetMicrocents", scope.remainingBudgetMicrocents());
    members.put("chainDepth", last.chainDepth());
    members.put("maxChainDepth", last.chainDepth() + last.remaining());
    members.put("contractId", last.contractId());
    members.put("delegationId", last.delegationId());
    members.put("issuer", scope.token().authority().get("issuer"));
    members.put("holder", last.delegatee());
    members.put("expiresAt", last.expiresAt());
    return Map.of("scope", members, "revocationIds", scope.token().revocationIds());
  }

  private static Object target(Map<String, Object> in) {
    String path = in.containsKey("path") ? text(in, "path") : "/" + text(in, "service") + "/" + text(in, "method");
    String htm = "connect-get".equals(in.get("protocol")) ? "GET" : "POST";
    if (in.containsKey("httpMethod")) htm = text(in, "httpMethod");
    return Map.of("htm", htm, "htu", Targets.of(text(in, "publicUrl"), path));
  }

  private static Object created(Map<String, Object> in) {
    String ard = in.containsKey("ard") ? text(in, "ard") : null;
    if (in.containsKey("arguments")) ard = Proof.digest(Json.write(in.get("arguments")));
    long now = whole(in.get("now"));
    String proof =
        Proof.create(
            keys(in), text(in, "htm"), text(in, "htu"), (String) in.get("token"), ard, now, text(in, "jti"));
    String[] parts = proof.split("\\.");
    return Map.of(
        "header", new String(Keys.decode(parts[0])), "payload", new String(Keys.decode(parts[1])), "proof", proof);
  }

  private static Proof.Call call(Map<String, Object> in) {
    return new Proof.Call(
        text(in, "htm"),
        text(in, "htu"),
        whole(in.get("now")),
        (String) in.get("principal"),
        (String) in.get("token"),
        (String) in.get("ard"));
  }

  private static Object accepted(Proof proof) {
    return Map.of(
        "jti", proof.jti(),
        "principal", proof.principal(),
        "thumbprint", proof.thumbprint(),
        "issuedAt", proof.issuedAt(),
        "expiresAt", proof.expiresAt());
  }

  private static Object inOrder(Map<String, Object> in) {
    Proof.Memory memory = new Proof.Memory();
    Stream<String> answers =
        TokenForm.maps(in.get("presentations")).stream()
        .map(
            one -> {
              Map<String, Object> call = new TreeMap<>(in);
              call.putAll(one);
              try {
                Proof.Call expected = call(call);
                memory.use(Proof.check(text(one, "proof"), expected), expected.now());
                return "accepted";
              } catch (Refusal refusal) {
                return refusal.denial;
              }
            });
    return Map.of("answers", answers.toList());
  }

  private static Keys keys(Map<String, Object> in) {
    return new Keys(bytes(in, "seedHex"));
  }

  private static long whole(Object number) {
    return ((Double) number).longValue();
  }

  /** The items of a member, none where it is absent. */
  @SuppressWarnings("unchecked")
  private static <T> List<T> items(Map<String, Object> in, String name) {
    return (List<T>) in.getOrDefault(name, List.of());
  }

  private static String text(Map<String, Object> in, String name) {
    return (String) in.get(name);
  }

  private static byte[] bytes(Map<String, Object> in, String name) {
    return HEX.parseHex(text(in, name));
  }

  private static String hex(byte[] bytes) {
    return HEX.formatHex(bytes);
  }

  private static Map<String, Object> member(Map<String, Object> in, String name) {
    return map(in.get(name));
  }

  private static Map<String, Object> map(Object value) {
    return TokenForm.map(value);
  }
}
