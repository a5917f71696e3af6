package dev.depute.examples;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;

/** Holder proofs (RFC 9449, DPoP): vectors/holder-proofs.md. */
record Proof(String jti, String principal, String thumbprint, long issuedAt, long expiresAt) {
  private static final int MAX_LENGTH = 4096;
  private static final long WINDOW_MS = 60_000;
  private static final long SKEW_MS = 30_000;
  private static final Pattern JTI = Pattern.compile("[!-~]{8,128}");
  private static final List<String> ALGORITHMS = List.of("EdDSA", "Ed25519");

  /** The call as its verifier received it. Absent members are null. {@code now} is in milliseconds since 1970. */
  record Call(String htm, String htu, long now, String principal, String token, String ard) {}

  /** A new proof for one attempt of a call. {@code token} is the presented token, or null. */
  static String create(Keys key, String htm, String htu, String token) {
    return create(key, htm, htu, token, null, System.currentTimeMillis(), Keys.encode(Keys.random(16)));
  }

  /** @param ard digest of the arguments of a tool call, or null */
  static String create(Keys key, String htm, String htu, String token, String ard, long now, String jti) {
    Map<String, Object> header = Map.of("alg", "EdDSA", "jwk", Keys.jwk(key.principal), "typ", "dpop+jwt");
    Map<String, Object> claims = new TreeMap<>(Map.of("htm", htm, "htu", htu, "jti", jti));
    claims.put("iat", Math.floorDiv(now, 1000L));
    if (token != null) claims.put("ath", digest(token));
    if (ard != null) claims.put("ard", ard);
    String signed = part(header) + "." + part(claims);
    return signed + "." + Keys.encode(key.sign(Keys.bytes(signed)));
  }

  private static String part(Object value) {
    return Keys.encode(Keys.bytes(Json.write(value)));
  }

  /** SHA-256 of a text, in base64url: {@code ath} of a token, and {@code ard} of canonical arguments. */
  static String digest(String text) {
    return Keys.encode(Keys.sha256(Keys.bytes(text)));
  }

  /** Checks a proof. Throws Refusal. */
  static Proof check(String proof, Call call) {
    if (proof == null || proof.isEmpty()) throw new Refusal("proof_required");
    demand(proof.length() <= MAX_LENGTH, "size");
    String[] parts = proof.split("\\.", -1);
    demand(parts.length == 3, "form");
    Map<String, Object> header = read(parts[0]);
    Map<String, Object> claims = read(parts[1]);
    String signer = signer(header);
    demand(call.principal == null || call.principal.equals(signer), "jwk");
    demand(call.htm.equals(claims.get("htm")), "htm");
    demand(claims.get("htu") instanceof String htu && Targets.isSame(htu, call.htu), "htu");
    demand(claims.get("jti") instanceof String jti && JTI.matcher(jti).matches(), "jti");
    demand(claims.get("iat") instanceof Double iat && iat == Math.rint(iat) && Math.abs(iat) < 1e15, "iat");
    long issuedAt = 1000 * ((Double) claims.get("iat")).longValue();
    demand(call.now - issuedAt >= -SKEW_MS && call.now - issuedAt <= WINDOW_MS, "iat");
    demand(isClaim(claims, "ath", call.token == null ? null : digest(call.token)), "ath");
    demand(isClaim(claims, "ard", call.ard), "ard");
    demand(!claims.containsKey("epk"), "epk");
    byte[] signed = Keys.bytes(parts[0] + "." + parts[1]);
    demand(Keys.verify(signature(parts[2]), signed, Keys.keyOf(signer)), "signature");
    return new Proof((String) claims.get("jti"), signer, Keys.thumbprint(signer), issuedAt, issuedAt + WINDOW_MS);
  }

  /** A claim has the expected value; without one it is absent. */
  private static boolean isClaim(Map<String, Object> claims, String name, String expected) {
    return expected == null ? !claims.containsKey(name) : expected.equals(claims.get(name));
  }

  /** The principal of a header with exactly {@code typ}, {@code alg} and a public key. */
  private static String signer(Map<String, Object> header) {
    demand(header.keySet().equals(Set.of("alg", "jwk", "typ")), "header");
    demand("dpop+jwt".equals(header.get("typ")) && ALGORITHMS.contains(header.get("alg")), "header");
    demand(header.get("jwk") instanceof Map, "header");
    Map<?, ?> jwk = (Map<?, ?>) header.get("jwk");
    demand("OKP".equals(jwk.get("kty")) && "Ed25519".equals(jwk.get("crv")), "header");
    for (var member : jwk.entrySet()) demand(isMember((String) member.getKey(), member.getValue()), "header");
    try {
      Keys.keyOf(TokenForm.string(jwk.get("x")));
    } catch (Refusal refusal) {
      throw new Refusal("invalid_proof", "header");
    }
    return (String) jwk.get("x");
  }

  private static boolean isMember(String name, Object value) {
    return switch (name) {
      case "kty", "crv", "x" -> true;
      case "kid" -> value instanceof String;
      case "use" -> "sig".equals(value);
      case "alg" -> value instanceof String && ALGORITHMS.contains(value);
      case "key_ops" -> value instanceof List<?> items && items.stream().allMatch("verify"::equals);
      case "ext" -> value instanceof Boolean;
      default -> false;
    };
  }

  private static Map<String, Object> read(String part) {
    try {
      return TokenForm.map(Json.parse(Token.utf8(Keys.decode(part))));
    } catch (Refusal refusal) {
      throw new Refusal("invalid_proof", "form");
    }
  }

  private static byte[] signature(String part) {
    try {
      return Keys.decode(part);
    } catch (Refusal refusal) {
      throw new Refusal("invalid_proof", "signature");
    }
  }

  private static void demand(boolean holds, String fault) {
    if (!holds) throw new Refusal("invalid_proof", fault);
  }

  /** The accepted proofs of a verifier: each counts once. */
  static final class Memory {
    private final Map<List<String>, Long> expiryOf = new HashMap<>();

    /** Throws Refusal for a proof that was accepted before and has not expired. */
    void use(Proof proof, long now) {
      expiryOf.values().removeIf(expiresAt -> expiresAt < now);
      Long before = expiryOf.putIfAbsent(List.of(proof.principal, proof.jti), proof.expiresAt);
      if (before != null) throw new Refusal("replayed_proof");
    }
  }
}
