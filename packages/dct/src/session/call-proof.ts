import { decodeBase64Url, encodeBase64Url } from "@depute/core";
import type { CryptoEngine } from "../engine.ts";

/** One call of a session: what its code covers, besides what the session is bound to. */
export interface SessionCall {
  readonly id: string;
  readonly counter: number;
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly htm: string;
  readonly htu: string;
  /** argumentsDigest, for a tool call. */
  readonly ard: string | undefined;
}

/** What stands in a call's proof; the rest of the call is the verifier's to know. */
export interface ReadCallProof {
  readonly id: string;
  readonly counter: number;
  readonly time: number;
  readonly code: Uint8Array;
}

const FORM = /^([A-Za-z0-9_-]{22})\.([1-9][0-9]{0,15})\.([1-9][0-9]{0,15})\.([A-Za-z0-9_-]{43})$/;
/** Characters of the longest text of that form. */
const MAX_CHARS = 22 + 16 + 16 + 43 + 3;

const utf8 = new TextEncoder();

/** `session.counter.time.code`, the code in base64url. */
export function writeCallProof(engine: CryptoEngine, key: Uint8Array, call: SessionCall): string {
  return `${call.id}.${call.counter}.${call.time}.${encodeBase64Url(callCode(engine, key, call))}`;
}

/** The parts of a call's proof; undefined for what is none. There is one spelling of each. */
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

/** The code of a call: keyed BLAKE2b-256 of a JSON array, in which no two calls are alike. */
export function callCode(engine: CryptoEngine, key: Uint8Array, call: SessionCall): Uint8Array {
  const { id, counter, time, htm, htu, ard = null } = call;
  return engine.mac(
    key,
    utf8.encode(JSON.stringify(["delegateos-call-v1", id, counter, time, htm, htu, ard])),
  );
}

/** Whether two codes are equal, in a time that does not tell where they differ. */
export function isSameCode(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= (a[i] as number) ^ (b[i] as number);
  return difference === 0;
}
