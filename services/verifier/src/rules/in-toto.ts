import { canonicalBytes, canonicalJson, decodeBase64Url, encodeHex } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import type { Attestation, TaskContract } from "./documents.ts";

/** The payload type of in-toto statements (DSSE). */
export const IN_TOTO_PAYLOAD_TYPE = "application/vnd.in-toto+json";
const STATEMENT_TYPE = "https://in-toto.io/Statement/v1";
/** Type of the predicate. The predicate is a signed attestation of DelegateOS 7.1. */
export const PREDICATE_TYPE = "https://depute.dev/delegateos/attestation/v0.1";

export interface DsseEnvelope {
  payloadType: string;
  payload: Uint8Array;
  signatures: { keyid: string; sig: Uint8Array }[];
}

/**
 * Returns an attestation as an in-toto statement (v1) in canonical JSON. The subjects are the contract and, if the
 * attestation has an output or its hash, the output.
 */
export function inTotoStatement(
  engine: CryptoEngine,
  attestation: Attestation,
  contract: TaskContract,
): Uint8Array {
  const { output, outputHash } = attestation.result;
  const bytes = output === undefined ? undefined : canonicalBytes(output);
  const blake2b = bytes === undefined ? decodeBase64Url(outputHash ?? "") : engine.blake2b256(bytes);
  const digest = {
    ...(blake2b !== undefined && blake2b.length > 0 && { blake2b_256: encodeHex(blake2b) }),
    // Adds SHA-256 for tools that support no other hash. This hash can be computed only from the output. So it is
    // absent if the attestation has only the output's BLAKE2b hash.
    ...(bytes !== undefined && { sha256: encodeHex(engine.sha256(bytes)) }),
  };
  const subject = [
    ...(Object.keys(digest).length === 0 ? [] : [{ name: "output", digest }]),
    { name: contract.id, digest: { sha256: encodeHex(engine.sha256(canonicalBytes(contract))) } },
  ];
  return canonicalBytes({
    _type: STATEMENT_TYPE,
    subject,
    predicateType: PREDICATE_TYPE,
    predicate: attestation,
  });
}

/** Returns the pre-authentication encoding: the bytes that a DSSE signature covers (DSSE v1, protocol). */
export function preAuthEncoding(payloadType: string, payload: Uint8Array): Uint8Array {
  const utf8 = new TextEncoder();
  const type = utf8.encode(payloadType);
  const head = utf8.encode(`DSSEv1 ${type.length} ${payloadType} ${payload.length} `);
  const bytes = new Uint8Array(head.length + payload.length);
  bytes.set(head);
  bytes.set(payload, head.length);
  return bytes;
}

/** Returns a DSSE envelope as JSON. Bytes are in padded base64. */
export function dsseJson({ payloadType, payload, signatures }: DsseEnvelope): string {
  return canonicalJson({
    payloadType,
    payload: toBase64(payload),
    signatures: signatures.map(({ keyid, sig }) => ({ keyid, sig: toBase64(sig) })),
  });
}

function toBase64(bytes: Uint8Array): string {
  // Converts the bytes in chunks, because a function call takes a limited number of arguments.
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return btoa(text);
}
