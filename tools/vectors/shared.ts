import { canonicalBytes, encodeBase64Url, encodeHex } from "@depute/core";
import { type Keypair, keypairFromSeed } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";

/** One case of a file of vectors. Exactly one of `expected` and `refusal` is present. */
export interface VectorCase {
  readonly name: string;
  /** The operation, as the specification page names it. */
  readonly operation: string;
  readonly input: unknown;
  readonly expected?: unknown;
  /** The name of the ErrorReason or DenialType of the refusal, for a refused input. */
  readonly refusal?: string;
  /** The location of the fault, if the page defines one. */
  readonly fault?: string;
}

/** The cases of one specification page. */
export interface VectorFile {
  readonly specification: string;
  /** Further values that several cases share. */
  readonly shared?: unknown;
  readonly cases: readonly VectorCase[];
}

export const engine = nativeEngine;

/** The private seeds of all vectors: 32 equal bytes each. */
export const SEED_BYTES = { root: 1, alice: 2, bob: 3, carol: 4, dave: 5, erin: 6, mallory: 9 } as const;

/** Returns the keypair of a seed of 32 equal bytes. */
export function keypairOf(name: keyof typeof SEED_BYTES): Keypair {
  return keypairFromSeed(engine, seedOf(name));
}

export function seedOf(name: keyof typeof SEED_BYTES): Uint8Array {
  return new Uint8Array(32).fill(SEED_BYTES[name]);
}

export function principalOf(name: keyof typeof SEED_BYTES): string {
  return keypairOf(name).principal.id;
}

/** 2026-02-17T12:00:00.000Z, in milliseconds since 1970. */
export const NOW = Date.UTC(2026, 1, 17, 12);

/** Returns base64url of the canonical JSON of a value. */
export function encodeJson(value: unknown): string {
  return encodeBase64Url(canonicalBytes(value));
}

/** Returns base64url of the UTF-8 of a text. */
export function encodeText(text: string): string {
  return encodeBase64Url(utf8(text));
}

export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export const hex = encodeHex;
