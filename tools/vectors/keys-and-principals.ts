import { decodeBase64Url, decodeHex, encodeBase64Url } from "@depute/core";
import { isAdmissible, keypairFromSeed, parsePrincipal, SIGNATURE_VECTORS, thumbprint } from "@depute/dct";
import {
  engine,
  hex,
  principalOf,
  SEED_BYTES,
  seedOf,
  utf8,
  type VectorCase,
  type VectorFile,
} from "./shared.ts";

/** A point of order 8 times a prime: the sum of an honest key and a point of small order. */
const MIXED_ORDER = SIGNATURE_VECTORS.find(({ name }) => name.startsWith("key of mixed order"))?.publicKey;

export function keyVectors(): VectorFile {
  return {
    specification: "keys-and-principals.md",
    cases: [...spellings(), ...keypairs(), ...signing(), ...signatures(), ...principals(), ...digests()],
  };
}

function spellings(): VectorCase[] {
  const texts = ["", "AA", "AAA", "AAAA", "-_-_", "A", "AAAAA", "AB", "AA==", "+/+/", " AA", "AA\n", "A.A"];
  return texts.map((text) => {
    const bytes = decodeBase64Url(text);
    const row = {
      name: `base64url ${JSON.stringify(text)}`,
      operation: "decode-base64url",
      input: { text },
    };
    return bytes === undefined
      ? { ...row, refusal: "malformed_token" }
      : { ...row, expected: { hex: hex(bytes) } };
  });
}

function keypairs(): VectorCase[] {
  const rfc8032 = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
  const seeds = [
    ...Object.keys(SEED_BYTES).map((name) => [name, hex(seedOf(name as keyof typeof SEED_BYTES))]),
    ["RFC 8032, 7.1, test 1", rfc8032],
  ];
  return seeds.map(([name, seedHex]) => {
    const seed = decodeHex(seedHex ?? "") as Uint8Array;
    const { id } = keypairFromSeed(engine, seed).principal;
    return {
      name: `keypair: ${name}`,
      operation: "keypair",
      input: { seedHex },
      expected: {
        publicKeyHex: hex(engine.publicKey(seed)),
        principal: id,
        thumbprint: thumbprint(engine, id),
      },
    };
  });
}

function signing(): VectorCase[] {
  return ["", "message", "\u20ac"].map((text) => ({
    name: `sign ${JSON.stringify(text)}`,
    operation: "sign",
    input: { seedHex: hex(seedOf("alice")), messageHex: hex(utf8(text)) },
    expected: { signature: encodeBase64Url(engine.sign(utf8(text), seedOf("alice"))) },
  }));
}

/** Signatures on which libraries disagree. */
function signatures(): VectorCase[] {
  return SIGNATURE_VECTORS.map(({ name, valid, publicKey, message, signature }) => ({
    name: `signature: ${name}`,
    operation: "verify",
    input: { publicKeyHex: publicKey, messageHex: message, signatureHex: signature },
    expected: { valid },
  }));
}

function principals(): VectorCase[] {
  const alice = principalOf("alice");
  const last = alice.at(-1) ?? "";
  const bytes = (text: string) => encodeBase64Url(decodeHex(text) ?? new Uint8Array());
  const rows: [name: string, principal: string][] = [
    ["of an honest key", alice],
    ["with padding", `${alice}=`],
    ["of 42 characters", alice.slice(0, -1)],
    ["with unused bits that are not zero", alice.slice(0, -1) + String.fromCharCode(last.charCodeAt(0) + 1)],
    ["in standard base64", `${alice.slice(0, -2)}+${last}`],
    ["of the identity", bytes(`01${"00".repeat(31)}`)],
    ["of a point of order 8", bytes("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")],
    ["with y above the field", bytes(`ee${"ff".repeat(30)}7f`)],
    ["with y equal to p - 1 and the sign bit", bytes(`ec${"ff".repeat(31)}`)],
    ["of mixed order", bytes(MIXED_ORDER ?? "")],
    ["of 32 bytes that are no point", bytes(`02${"00".repeat(31)}`)],
  ];
  return rows.map(([name, principal]) => {
    const key = parsePrincipal(principal);
    const row = { name: `principal ${name}`, operation: "principal", input: { principal } };
    if (key === undefined) return { ...row, refusal: "malformed_token" };
    return { ...row, expected: { publicKeyHex: hex(key), admissible: isAdmissible(engine, principal) } };
  });
}

function digests(): VectorCase[] {
  return ["", "abc", "\u20ac"].map((text) => ({
    name: `BLAKE2b of ${JSON.stringify(text)}`,
    operation: "blake2b",
    input: { dataHex: hex(utf8(text)), keyHex: hex(seedOf("bob")) },
    expected: {
      unkeyedHex: hex(engine.blake2b256(utf8(text))),
      keyedHex: hex(engine.mac(seedOf("bob"), utf8(text))),
    },
  }));
}
