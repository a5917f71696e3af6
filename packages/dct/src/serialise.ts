import { canonicalBytes, canonicalJson, decodeBase64Url, encodeBase64Url } from "@depute/core";
import { type DenialReason, deny, TokenError } from "./denial.ts";
import { readJsonQuickly, readQuickly } from "./fast/read.ts";
import { MAX_TOKEN_CHARS, MAX_TOKEN_NESTING } from "./limits.ts";
import { BlockTexts, type ReadToken } from "./payload.ts";
import type { ShapeRules } from "./structure.ts";
import { assertToken, DEFAULT_RULES } from "./structure.ts";
import { type SerializedDCT, type SignedJSONToken, SJT_FORMAT } from "./types.ts";

/** A received token: the serialised form of DelegateOS 3.2, or only its text as in `authorization: DPoP`. */
export type TokenInput = SerializedDCT | string;

/**
 * Returns the serialised form of a token (DelegateOS 3.2). Throws TokenError for an invalid token, with the type
 * token_too_large for more than 16,000 characters.
 */
export function serialiseToken(token: SignedJSONToken, rules: ShapeRules = DEFAULT_RULES): SerializedDCT {
  assertToken(token, rules);
  const text = encodeBase64Url(canonicalBytes(token));
  if (text.length > MAX_TOKEN_CHARS)
    deny("token_too_large", `token: more than ${MAX_TOKEN_CHARS} characters`);
  return { token: text, format: SJT_FORMAT };
}

/**
 * Parses a token (DelegateOS 10.1 step 1), and never throws. The bytes must be exactly the canonical JSON of their
 * content. Therefore a token has only one text: white space, member order, repeated members and escapes allow no second
 * spelling.
 */
export function parseToken(
  input: unknown,
  rules: ShapeRules = DEFAULT_RULES,
): { ok: true; token: SignedJSONToken } | { ok: false; denial: DenialReason } {
  try {
    return { ok: true, token: readToken(input, rules) };
  } catch (error) {
    if (error instanceof TokenError) return { ok: false, denial: error.denial };
    return { ok: false, denial: { type: "malformed_token", detail: "unreadable" } };
  }
}

/**
 * The way to read a token's text and to check its chain. `fast` reads a canonical text in one pass with caches, and
 * any other text like `reference`. `reference` uses no shortcuts and no caches. Both give equal results.
 */
export type ReadingPath = "fast" | "reference";

/** Parses like parseToken, but throws TokenError for an invalid token. */
export function readToken(input: unknown, rules: ShapeRules): SignedJSONToken {
  const text = tokenText(input);
  return (readQuickly(text, rules) ?? readThoroughly(text, rules)).token;
}

/**
 * Reads like readToken, from a text that tokenText returned. Also returns the canonical texts of the blocks. Throws
 * TokenError for an invalid token.
 */
export function readTexts(text: string, rules: ShapeRules, path: ReadingPath): ReadToken {
  return (path === "fast" ? readQuickly(text, rules) : undefined) ?? readThoroughly(text, rules);
}

/**
 * Parses a token from JSON that canonicalJson wrote, and returns it with the canonical texts of its blocks.
 *
 * @throws TokenError unless the JSON is a token
 */
export function readCanonical(json: string, rules: ShapeRules): ReadToken {
  const quick = readJsonQuickly(json, rules);
  if (quick !== undefined) return quick;
  const value: unknown = JSON.parse(json);
  assertToken(value, rules);
  return { token: value, texts: new BlockTexts(value.authority, value.attenuations) };
}

function readThoroughly(text: string, rules: ShapeRules): ReadToken {
  const bytes = decodeBase64Url(text) ?? deny("malformed_token", "token: not base64url");
  const json = decodeUtf8(bytes);
  if (nestsDeeperThan(json, MAX_TOKEN_NESTING)) deny("malformed_token", "nested too deep");
  const value = parseJson(json);
  assertToken(value, rules);
  if (writeJson(value) !== json) deny("malformed_token", "not canonical");
  return { token: value, texts: new BlockTexts(value.authority, value.attenuations) };
}

/**
 * Returns the serialised text of a token from either form of input. Throws TokenError for another form or format, and
 * for more than 16,000 characters.
 */
export function tokenText(input: unknown): string {
  let text: unknown = input;
  if (typeof input === "object" && input !== null) {
    if ((input as SerializedDCT).format !== SJT_FORMAT) deny("malformed_token", `format: not ${SJT_FORMAT}`);
    text = (input as SerializedDCT).token;
  }
  if (typeof text !== "string") deny("malformed_token", "token: not text");
  if (text.length > MAX_TOKEN_CHARS)
    deny("token_too_large", `token: more than ${MAX_TOKEN_CHARS} characters`);
  return text;
}

/**
 * The decoder is `fatal`, because a lenient decoder replaces invalid bytes by U+FFFD. `ignoreBOM` leaves a byte order
 * mark in the text, so that the reader refuses the mark instead of dropping it.
 */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    return deny("malformed_token", "not UTF-8");
  }
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return deny("malformed_token", "not JSON");
  }
}

function writeJson(value: unknown): string {
  try {
    return canonicalJson(value);
  } catch {
    return deny("malformed_token", "no canonical form");
  }
}

/** Counts brackets outside of strings. The result can be wrong only for invalid JSON, which is refused later. */
function nestsDeeperThan(json: string, max: number): boolean {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < json.length; i++) {
    const character = json[i];
    if (inString) {
      if (character === "\\") i++;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === "{" || character === "[") {
      if (++depth > max) return true;
    } else if (character === "}" || character === "]") depth--;
  }
  return false;
}
