import { CanonicalError, canonicalBytes, decodeBase64Url, encodeBase64Url, isObject } from "@depute/core";
import { TokenError } from "./denial.ts";
import type { CryptoEngine } from "./engine.ts";
import { parsePrincipal } from "./principal.ts";
import {
  anyObject,
  array,
  bool,
  count,
  DEFAULT_RULES,
  digest,
  id,
  object,
  oneOf,
  principal,
  type Shape,
  type ShapeRules,
  signature,
  text,
  that,
  time,
} from "./structure.ts";
import type { Attestation, Keypair, RevocationEntry, TaskContract } from "./types.ts";

/** The kinds of object that a principal signs as a whole: the signature covers all members except `signature`. */
export interface SignedObjects {
  contract: TaskContract;
  attestation: Attestation;
  revocation: RevocationEntry;
}

export type ObjectKind = keyof SignedObjects;

/** The reason of an object's refusal; `detail` names the member, without the sender's text. */
export interface ObjectRefusal {
  problem: "malformed" | "invalid_signature";
  detail: string;
}

const score = that(
  "not a number from 0 to 1",
  (value) => typeof value === "number" && value >= 0 && value <= 1,
);
const duration = that("not a number of milliseconds", (value) => {
  return typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
});
const anything: Shape = () => {};
const version = oneOf("0.1");

/**
 * The members of each kind of object. No object may fit two kinds. Otherwise one signature would be valid for two
 * different statements. The reason is that all kinds use the same keys and signature scheme, and DelegateOS defines
 * no domain tags.
 */
const SHAPES: Record<ObjectKind, Shape> = {
  contract: object({
    id: id("ct"),
    version,
    issuer: principal,
    createdAt: time,
    task: object({
      title: text(1000),
      description: text(100_000),
      inputs: anyObject,
      outputSchema: that("not a schema", (value) => typeof value === "boolean" || isObject(value)),
    }),
    verification: anyObject,
    constraints: object({
      maxBudgetMicrocents: count,
      deadline: time,
      maxChainDepth: count,
      requiredCapabilities: array(text(200), 64),
    }),
    signature,
  }),
  attestation: object({
    id: id("att"),
    version,
    contractId: id("ct"),
    delegationId: id("del"),
    principal,
    createdAt: time,
    type: oneOf("completion", "delegation_verification"),
    result: object(
      { success: bool, costMicrocents: count, durationMs: duration },
      {
        output: anything,
        outputHash: text(200),
        verificationOutcome: object({ method: text(100), passed: bool }, { score, details: text(100_000) }),
      },
    ),
    childAttestations: array(id("att"), 1000),
    signature,
  }),
  revocation: object({
    revocationId: digest,
    revokedBy: principal,
    revokedAt: time,
    scope: oneOf("block", "chain"),
    signature,
  }),
};

/** The member that names the required signer. */
const SIGNER = { contract: "issuer", attestation: "principal", revocation: "revokedBy" } as const;

/**
 * Returns the 32 bytes that the signature of an object covers (DelegateOS 4.1, 5.1, 7.2): BLAKE2b-256 of the canonical
 * JSON of all members except `signature`. Throws CanonicalError for a value that is not JSON.
 */
export function objectSigningInput(engine: CryptoEngine, value: object): Uint8Array {
  const { signature: _, ...body } = value as Record<string, unknown>;
  return engine.blake2b256(canonicalBytes(body));
}

/**
 * Signs an object of a kind. The key must belong to the principal in the kind's signer member (`SIGNER`). Throws
 * TokenError: malformed_token for an invalid member, invalid_signature for another key. Throws CanonicalError for a
 * value that is not JSON.
 */
export function signObject<K extends ObjectKind>(
  engine: CryptoEngine,
  kind: K,
  body: Omit<SignedObjects[K], "signature">,
  keypair: Keypair,
  rules: ShapeRules = DEFAULT_RULES,
): SignedObjects[K] {
  const digest = objectSigningInput(engine, body);
  return attachObjectSignature(engine, kind, body, engine.sign(digest, keypair.privateKey), rules);
}

/**
 * Returns the object with a signature over objectSigningInput that was made elsewhere. Throws TokenError:
 * malformed_token for an invalid member, invalid_signature for a signature that the signer did not make.
 */
export function attachObjectSignature<K extends ObjectKind>(
  engine: CryptoEngine,
  kind: K,
  body: Omit<SignedObjects[K], "signature">,
  signature: Uint8Array,
  rules: ShapeRules = DEFAULT_RULES,
): SignedObjects[K] {
  const signed = { ...body, signature: encodeBase64Url(signature) };
  const result = verifyObject(engine, kind, signed, rules);
  if (result.ok) return result.object;
  const type = result.refusal.problem === "malformed" ? "malformed_token" : "invalid_signature";
  throw new TokenError({ type, detail: result.refusal.detail });
}

/** Checks the form and the signature of an object of a kind, and never throws. */
export function verifyObject<K extends ObjectKind>(
  engine: CryptoEngine,
  kind: K,
  value: unknown,
  rules: ShapeRules = DEFAULT_RULES,
): { ok: true; object: SignedObjects[K] } | { ok: false; refusal: ObjectRefusal } {
  try {
    SHAPES[kind](value, "", rules);
    const object = value as Record<string, unknown>;
    const key = parsePrincipal(object[SIGNER[kind]]);
    const bytes = decodeBase64Url(object.signature as string);
    if (key === undefined || bytes === undefined) return refused("malformed", "signature");
    if (!engine.verify(bytes, objectSigningInput(engine, object), key)) {
      return refused("invalid_signature", `not signed by ${SIGNER[kind]}`);
    }
    return { ok: true, object: value as SignedObjects[K] };
  } catch (error) {
    if (error instanceof TokenError) return refused("malformed", error.denial.detail ?? kind);
    if (error instanceof CanonicalError) return refused("malformed", "not JSON");
    return refused("malformed", "unreadable");
  }
}

function refused(problem: ObjectRefusal["problem"], detail: string): { ok: false; refusal: ObjectRefusal } {
  return { ok: false, refusal: { problem, detail } };
}
