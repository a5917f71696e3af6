package dev.depute.examples;

import java.io.IOException;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.security.Signature;
import java.security.spec.EdECPoint;
import java.security.spec.EdECPublicKeySpec;
import java.security.spec.NamedParameterSpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Map;
import java.util.Set;
import org.bouncycastle.crypto.digests.Blake2bDigest;
import org.bouncycastle.math.ec.rfc8032.Ed25519;

/** An Ed25519 key, and the functions of vectors/keys-and-principals.md. */
final class Keys {
  private static final BigInteger ORDER =
      BigInteger.TWO.pow(252).add(new BigInteger("27742317777372353535851937790883648493"));
  private static final BigInteger FIELD = BigInteger.TWO.pow(255).subtract(BigInteger.valueOf(19));
  private static final SecureRandom RANDOM = new SecureRandom();

  /** The y coordinates of the points of small order, each with both signs. */
  private static final Set<String> SMALL_ORDER =
      Set.of(
          "00".repeat(32),
          "01" + "00".repeat(31),
          "ec" + "ff".repeat(30) + "7f",
          "ed" + "ff".repeat(30) + "7f",
          "ee" + "ff".repeat(30) + "7f",
          "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
          "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a");

  private final byte[] seed;

  /** The public key in base64url, 43 characters. */
  final String principal;

  Keys(byte[] seed) {
    byte[] key = new byte[32];
    Ed25519.generatePublicKey(seed, 0, key, 0);
    this.seed = seed.clone();
    principal = encode(key);
  }

  /** Reads the seed of a file, which only its owner may read. A missing file is made with a new seed. */
  static Keys of(Path file) throws IOException {
    if (Files.notExists(file)) {
      var owner = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
      Files.createFile(file, owner);
      Files.writeString(file, encode(random(32)) + "\n");
    }
    return new Keys(decode(Files.readString(file).strip()));
  }

  byte[] sign(byte[] message) {
    byte[] signature = new byte[64];
    Ed25519.sign(seed, 0, message, 0, message.length, signature, 0);
    return signature;
  }

  /** Signs a digest of canonical JSON, as tokens and documents are signed. Returns base64url. */
  String signDigestOf(Object value) {
    return encode(sign(blake2b(bytes(Json.write(value)))));
  }

  /** Whether a signature is valid: the checks that libraries lack, then the cofactorless equation of the JDK. */
  static boolean verify(byte[] signature, byte[] message, byte[] key) {
    if (signature.length != 64 || number(Arrays.copyOfRange(signature, 32, 64)).compareTo(ORDER) >= 0) return false;
    byte[] r = Arrays.copyOf(signature, 32);
    if (hasSmallOrder(r) || y(r).compareTo(FIELD) >= 0 || !isKey(key)) return false;
    try {
      var point = new EdECPoint((key[31] & 0x80) != 0, y(key));
      var spec = new EdECPublicKeySpec(NamedParameterSpec.ED25519, point);
      Signature verifier = Signature.getInstance("Ed25519");
      verifier.initVerify(KeyFactory.getInstance("Ed25519").generatePublic(spec));
      verifier.update(message);
      return verifier.verify(signature);
    } catch (GeneralSecurityException error) {
      return false;
    }
  }

  /** The key of a principal. Throws Refusal where the text is no principal. */
  static byte[] keyOf(String principal) {
    byte[] key = decode(principal);
    if (!isKey(key)) throw new Refusal("malformed_token", "principal");
    return key;
  }

  /** Whether a key is a point of prime order, as the platform requires of registered principals. */
  static boolean isAdmissible(byte[] key) {
    return Ed25519.validatePublicKeyFull(key, 0);
  }

  private static boolean isKey(byte[] key) {
    return key.length == 32 && y(key).compareTo(FIELD) < 0 && !hasSmallOrder(key);
  }

  private static boolean hasSmallOrder(byte[] point) {
    byte[] unsigned = point.clone();
    unsigned[31] &= 0x7f;
    return SMALL_ORDER.contains(HexFormat.of().formatHex(unsigned));
  }

  private static BigInteger y(byte[] point) {
    return number(point).clearBit(255);
  }

  private static BigInteger number(byte[] littleEndian) {
    byte[] reversed = new byte[littleEndian.length];
    for (int i = 0; i < reversed.length; i++) reversed[i] = littleEndian[reversed.length - 1 - i];
    return new BigInteger(1, reversed);
  }

  /** The RFC 7638 thumbprint of a principal's key. */
  static String thumbprint(String principal) {
    return encode(sha256(bytes(Json.write(jwk(principal)))));
  }

  /** The public key as a JSON Web Key (RFC 8037). */
  static Map<String, Object> jwk(String principal) {
    return Map.of("crv", "Ed25519", "kty", "OKP", "x", principal);
  }

  /** BLAKE2b with 32 bytes of output and no key. */
  static byte[] blake2b(byte[] data) {
    return blake2b(data, null);
  }

  /** BLAKE2b with 32 bytes of output; {@code key} may be null. */
  static byte[] blake2b(byte[] data, byte[] key) {
    Blake2bDigest digest = new Blake2bDigest(key, 32, null, null);
    byte[] out = new byte[32];
    digest.update(data, 0, data.length);
    digest.doFinal(out, 0);
    return out;
  }

  static byte[] sha256(byte[] data) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(data);
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException(error);
    }
  }

  static byte[] random(int length) {
    byte[] bytes = new byte[length];
    RANDOM.nextBytes(bytes);
    return bytes;
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static String encode(byte[] bytes) {
    return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
  }

  /** Reads base64url. A byte sequence has one spelling only. Throws Refusal. */
  static byte[] decode(String text) {
    try {
      byte[] bytes = Base64.getUrlDecoder().decode(text);
      if (encode(bytes).equals(text)) return bytes;
    } catch (IllegalArgumentException error) {
      // A text that is no base64url is refused below, like any other wrong spelling.
    }
    throw new Refusal("malformed_token", "base64url");
  }
}
