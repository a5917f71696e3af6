import type { DeputeError, FieldViolation } from "@depute/core";

/** Maximum length of `grpc-message` in characters, after percent-encoding. */
const MAX_MESSAGE_CHARS = 1800;
/** Maximum bytes of one value of the metadata. */
const MAX_VALUE_BYTES = 400;
const MAX_FIELD_BYTES = 200;
const MAX_DESCRIPTION_BYTES = 300;
/** Maximum bytes of message, metadata and violations together. `grpc-status-details-bin` carries them in base64. */
const MAX_DETAIL_BYTES = 4000;
/** Bytes to reserve for the tags and lengths around one value. */
const AROUND_BYTES = 12;

/** The members of an error that are sent to the client. */
export type FittedError = Pick<DeputeError, "message" | "metadata" | "violations">;

/**
 * Shortens a refusal so that its trailers stay below 8 KB, the limit of stock gRPC clients and proxies. Long texts are
 * cut. If the error is still too long, the last violations are left out, then the last entries of the metadata.
 * `more_violations` states how many violations are left out.
 */
export function fitError({ message, metadata, violations }: FittedError): FittedError {
  const short = fitMessage(message);
  const values = Object.entries(metadata).map(([key, value]) => [key, cut(value, MAX_VALUE_BYTES)] as const);
  let remainingBytes = MAX_DETAIL_BYTES - Buffer.byteLength(short);
  const includedEntries: [string, string][] = [];
  for (const [key, value] of values) {
    remainingBytes -= Buffer.byteLength(key) + Buffer.byteLength(value) + AROUND_BYTES;
    if (remainingBytes < 0) break;
    includedEntries.push([key, value]);
  }
  const includedViolations: FieldViolation[] = [];
  for (const violation of violations) {
    const one = fitViolation(violation);
    remainingBytes -= sizeOf(one);
    if (remainingBytes < 0) break;
    includedViolations.push(one);
  }
  const omitted = violations.length - includedViolations.length;
  if (omitted > 0) {
    const more = omitted + Number(metadata.more_violations ?? 0);
    return {
      message: short,
      metadata: { ...Object.fromEntries(includedEntries), more_violations: String(more) },
      violations: includedViolations,
    };
  }
  return { message: short, metadata: Object.fromEntries(includedEntries), violations: includedViolations };
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

/**
 * Returns the text if it has at most `maxBytes` bytes. Otherwise returns its first bytes, at most `maxBytes` and
 * without half a character, followed by an ellipsis.
 */
function cut(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text;
  let end = maxBytes;
  const bytes = Buffer.from(text);
  // In UTF-8, every byte of a character except the first begins with the bits 10.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return `${bytes.toString("utf8", 0, end)}…`;
}
