import { canonicalBytes, canonicalJson, decodeBase64Url, encodeHex } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import type { Attestation, TaskContract } from "./documents.ts";

/** The payload type of in-toto statements (DSSE). */
export const IN_TOTO_PAYLOAD_TYPE = "application/vnd.in-toto+json";
const STATEMENT_TYPE = "https://in-toto.io/Statement/v1";
/** What the predicate is: an attestation of DelegateOS 7.1, signature included. */
export const PREDICATE_TYPE = "https://depute.dev/delegateos/attestation/v0.1";

export interface DsseEnvelope {
  payloadType: string;
  payload: Uint8Array;
  signatures: { keyid: string; sig: Uint8Array }[];
}

/**
 * An attestation as an in-toto statement (v1), in canonical JSON. What it is about: the output, where it holds one or its
 * hash, and the contract.
 */
export function inTotoStatement(
  engine: CryptoEngine,
  attestation: Attestation,
  contract: TaskContract,
): Uint8Array {
  const { output, outputHash } = attestation.result;
  const hash =
    outputHash === undefined
      ? output === undefined
        ? undefined
        : engine.blake2b256(canonicalBytes(output))
      : decodeBase64Url(outputHash);
  const subject = [
    ...(hash === undefined ? [] : [{ name: "output", digest: { blake2b_256: encodeHex(hash) } }]),
    { name: contract.id, digest: { sha256: encodeHex(engine.sha256(canonicalBytes(contract))) } },
  ];
  return canonicalBytes({
    _type: STATEMENT_TYPE,
    subject,
    predicateType: PREDICATE_TYPE,
    predicate: attestation,
  });
}

/** The pre-authentication encoding: the bytes that a DSSE signature covers (DSSE v1, protocol). */
export function preAuthEncoding(payloadType: string, payload: Uint8Array): Uint8Array {
  const utf8 = new TextEncoder();
  const type = utf8.encode(payloadType);
  const head = utf8.encode(`DSSEv1 ${type.length} ${payloadType} ${payload.length} `);
  const bytes = new Uint8Array(head.length + payload.length);
  bytes.set(head);
  bytes.set(payload, head.length);
  return bytes;
}

/** The envelope as the JSON document of DSSE, whose bytes are base64 with padding. */
export function dsseJson({ payloadType, payload, signatures }: DsseEnvelope): string {
  return canonicalJson({
    payloadType,
    payload: toBase64(payload),
    signatures: signatures.map(({ keyid, sig }) => ({ keyid, sig: toBase64(sig) })),
  });
}

function toBase64(bytes: Uint8Array): string {
  // In pieces: a call takes only so many arguments.
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return btoa(text);
}
