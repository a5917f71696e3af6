import type { DeputeError, FieldViolation } from "@depute/core";

/** Characters of `grpc-message`, percent-encoded. */
const MAX_MESSAGE_CHARS = 1800;
/** Bytes of one value of the metadata, of one path and of one description. */
const MAX_VALUE_BYTES = 400;
const MAX_FIELD_BYTES = 200;
const MAX_DESCRIPTION_BYTES = 300;
/** Bytes of message, metadata and violations, which `grpc-status-details-bin` carries in base64. */
const MAX_DETAIL_BYTES = 4000;
/** Bytes of tags and lengths around one value. */
const AROUND_BYTES = 12;

/** What travels of a refusal. */
export type FittedError = Pick<DeputeError, "message" | "metadata" | "violations">;

/**
 * Cuts a refusal so that its trailers stay below 8 KB, which stock gRPC clients and proxies take at most: texts first, then
 * the last violations, which `more_violations` counts.
 */
export function fitError({ message, metadata, violations }: FittedError): FittedError {
  const short = fitMessage(message);
  const values = Object.entries(metadata).map(([key, value]) => [key, cut(value, MAX_VALUE_BYTES)] as const);
  let left = MAX_DETAIL_BYTES - Buffer.byteLength(short);
  const kept: [string, string][] = [];
  for (const [key, value] of values) {
    left -= Buffer.byteLength(key) + Buffer.byteLength(value) + AROUND_BYTES;
    if (left < 0) break;
    kept.push([key, value]);
  }
  const named: FieldViolation[] = [];
  for (const violation of violations) {
    const one = fitViolation(violation);
    left -= sizeOf(one);
    if (left < 0) break;
    named.push(one);
  }
  const omitted = violations.length - named.length;
  if (omitted > 0) {
    const more = omitted + Number(metadata.more_violations ?? 0);
    return {
      message: short,
      metadata: { ...Object.fromEntries(kept), more_violations: String(more) },
      violations: named,
    };
  }
  return { message: short, metadata: Object.fromEntries(kept), violations: named };
}

function fitViolation({ field, description, reason }: FieldViolation): FieldViolation {
  const texts = { field: cut(field, MAX_FIELD_BYTES), description: cut(description, MAX_DESCRIPTION_BYTES) };
  return reason === undefined ? texts : { ...texts, reason: cut(reason, MAX_FIELD_BYTES) };
}

function sizeOf({ field, description, reason = "" }: FieldViolation): number {
  return Buffer.byteLength(field) + Buffer.byteLength(description) + Buffer.byteLength(reason) + AROUND_BYTES;
}

function fitMessage(message: string): string {
  let text = message.toWellFormed();
  for (let chars = text.length; encodeURIComponent(text).length > MAX_MESSAGE_CHARS; ) {
    chars = Math.floor(chars * 0.8);
    text = `${text.slice(0, chars).toWellFormed()}…`;
  }
  return text;
}

/** The beginning of a text, without half a character. */
function cut(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text;
  let end = maxBytes;
  const bytes = Buffer.from(text);
  // Bytes of a character after its first one begin with the bits 10.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return `${bytes.toString("utf8", 0, end)}…`;
}
