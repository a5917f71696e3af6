import { decodeBase64Url, encodeBase64Url } from "@depute/core";
import type { CryptoEngine } from "../engine.ts";
import { utf8Of } from "../payload.ts";

/** The values of one call that its code covers, in addition to the holder session's terms. */
export interface SessionCall {
  readonly id: string;
  readonly counter: number;
  /** The time of the call, in milliseconds since 1970. */
  readonly time: number;
  readonly htm: string;
  readonly htu: string;
  /** The argumentsDigest of the call, for a tool call. */
  readonly ard: string | undefined;
}

/** The content of a call's proof. The verifier knows the other values of the call. */
export interface ReadCallProof {
  readonly id: string;
  readonly counter: number;
  readonly time: number;
  readonly code: Uint8Array;
}

const FORM = /^([A-Za-z0-9_-]{22})\.([1-9][0-9]{0,15})\.([1-9][0-9]{0,15})\.([A-Za-z0-9_-]{43})$/;
/** Maximum length of a proof of this form, in characters. */
const MAX_CHARS = 22 + 16 + 16 + 43 + 3;

/**
 * Returns the proof of a call, `ID.COUNTER.TIME.CODE`: the holder session's id, the call's number, the call's time in
 * milliseconds since 1970, and the code in base64url.
 */
export function writeCallProof(engine: CryptoEngine, key: Uint8Array, call: SessionCall): string {
  return `${call.id}.${call.counter}.${call.time}.${encodeBase64Url(callCode(engine, key, call))}`;
}

/** Parses the proof of a call; undefined for a malformed proof. Each part has only one valid spelling. */
export function readCallProof(text: unknown): ReadCallProof | undefined {
  if (typeof text !== "string" || text.length > MAX_CHARS) return undefined;
  const [, id = "", counter, time, code = ""] = FORM.exec(text) ?? [];
  const bytes = decodeBase64Url(code);
  const read = { id, counter: Number(counter), time: Number(time) };
  if (bytes?.length !== 32 || !Number.isSafeInteger(read.counter) || !Number.isSafeInteger(read.time)) {
    return undefined;
  }
  return { ...read, code: bytes };
}

/** Returns the code of a call: keyed BLAKE2b-256 of a JSON array that is unique for each call. */
export function callCode(engine: CryptoEngine, key: Uint8Array, call: SessionCall): Uint8Array {
  const { id, counter, time, htm, htu, ard = null } = call;
  return engine.mac(key, utf8Of(JSON.stringify(["delegateos-call-v1", id, counter, time, htm, htu, ard])));
}

/** Whether two codes are equal, in constant time. */
export function isSameCode(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= (a[i] as number) ^ (b[i] as number);
  return difference === 0;
}
