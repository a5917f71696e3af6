import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";

/** The configured Bearer and X-API-Key secrets, by whom they belong to. Only their digests are held. */
export interface Credentials {
  /** The principal that a secret belongs to; undefined when it is nobody's. */
  principalOf(secret: string): string | undefined;
  /** Whether some secret belongs to the principal. */
  names(principal: string): boolean;
  readonly size: number;
}

const HEX_SHA256 = /^[0-9a-f]{64}$/;

/** Nobody's secret is right. */
export const noCredentials: Credentials = {
  principalOf: () => undefined,
  names: () => false,
  size: 0,
};

/**
 * Reads a JSON array of `{principal, sha256}`, the digest in lower-case hex.
 *
 * @throws Error that names the faulty entry by its index, never by its content
 */
export function parseCredentials(json: string): Credentials {
  const entries: unknown = JSON.parse(json);
  if (!Array.isArray(entries)) throw new Error("credentials: not a JSON array");
  const principals = new Map<string, string>();
  entries.forEach((entry: unknown, index) => {
    const { principal, sha256 } = (entry ?? {}) as { principal?: unknown; sha256?: unknown };
    if (typeof principal !== "string" || principal === "") {
      throw new Error(`credentials[${index}].principal: not a text`);
    }
    if (typeof sha256 !== "string" || !HEX_SHA256.test(sha256)) {
      throw new Error(`credentials[${index}].sha256: not 64 lower-case hex digits`);
    }
    if (principals.has(sha256)) throw new Error(`credentials[${index}].sha256: the same secret twice`);
    principals.set(sha256, principal);
  });
  // The look-up compares digests: what its time tells is about a hash that nobody can steer, not about the secret.
  const named = new Set(principals.values());
  return {
    principalOf: (secret) => principals.get(sha256Hex(secret)),
    names: (principal) => named.has(principal),
    size: principals.size,
  };
}

/** Reads a credentials file; no path means no credentials. */
export function readCredentials(path: string): Credentials {
  if (path === "") return noCredentials;
  try {
    return parseCredentials(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new Error(`cannot use the credentials file ${path}: ${(cause as Error).message}`, { cause });
  }
}

/** Whether a text is the secret, in a time that does not depend on where they differ; an empty secret is nobody's. */
export function isSecret(secret: string, text: string | null): boolean {
  if (secret === "" || text === null) return false;
  return timingSafeEqual(sha256(secret), sha256(text));
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function sha256Hex(text: string): string {
  return sha256(text).toString("hex");
}
