import { Code, ConnectError } from "@connectrpc/connect";
import { DeputeError, ErrorReason, reasonName } from "@depute/core";
import { type DestinationStream, type Logger, pino } from "pino";

export type { Logger };

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

export interface LogOptions {
  level: string;
  /** The name of the process, which every line contains. */
  name: string;
  /** The stream for log lines. Default: standard error, because commands write their results to standard output. */
  destination?: DestinationStream;
}

const SECRET_KEYS = [
  "authorization",
  "dpop",
  '["x-api-key"]',
  '["depute-internal"]',
  "cookie",
  "token",
  "proof",
  "secret",
  "password",
  "api_key",
  "apiKey",
  "private_key",
  "privateKey",
];

const PLACES = ["", "*", "*.*"];

// Matches two kinds of secrets: credentials after an authentication scheme, and base64url of a text that begins
// with `{"`, as tokens and proofs do.
const SECRET_TEXT = /\b(Bearer|DPoP)\s+[\w.~+/=-]{4,}|\beyJ[\w-]{8,}(?:\.[\w-]*)*/g;

/** Creates a structured log: one JSON object per line, without anything that could be used as a credential. */
export function createLogger({ level, name, destination = pino.destination(2) }: LogOptions): Logger {
  return pino(
    {
      level,
      base: { name, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: flat },
      redact: { paths: secretPaths(), censor: "[redacted]" },
      hooks: { streamWrite: scrub },
    },
    destination,
  );
}

/** Maximum number of nested causes of an error in one log line. */
const MAX_CAUSES = 4;

/**
 * Returns the fields of a log line, without the inner structure of errors and protobuf messages. An error in `err`
 * becomes `error`, `error_type` and `error_reason` or `error_code`; an internal fault adds `error_stack`.
 */
function flat(fields: Record<string, unknown>): Record<string, unknown> {
  const { err, ...others } = fields;
  const plain = Object.fromEntries(Object.entries(others).map(([name, value]) => [name, shallow(value)]));
  if (err === undefined) return plain;
  if (!(err instanceof Error)) return { ...plain, error: shallow(err) };
  return { ...plain, ...errorFields(err) };
}

function errorFields(error: Error): Record<string, unknown> {
  const { code } = error as { code?: unknown };
  const isRefusal =
    (error instanceof DeputeError && error.reason !== ErrorReason.INTERNAL) ||
    (error instanceof ConnectError && !FAULTS.has(error.code));
  return {
    error: error instanceof ConnectError ? error.rawMessage : error.message,
    error_type: error.name,
    ...(error instanceof DeputeError ? { error_reason: reasonName(error.reason) } : {}),
    ...(error instanceof ConnectError ? { error_code: Code[error.code] } : {}),
    ...(typeof code === "string" ? { error_code: code } : {}),
    ...(isRefusal ? {} : { error_stack: stackOf(error) }),
  };
}

const FAULTS: ReadonlySet<Code> = new Set([Code.Internal, Code.Unknown, Code.DataLoss]);

function stackOf(error: Error): string {
  const stacks: string[] = [];
  for (let at: unknown = error; at instanceof Error && stacks.length < MAX_CAUSES; at = at.cause) {
    stacks.push(at.stack ?? at.message);
  }
  return stacks.join("\ncaused by: ");
}

/**
 * Returns the form of a value in the log: of an error its message; of a protobuf message, which contains its
 * descriptors, only the name of its type; any other value unchanged.
 */
function shallow(value: unknown): unknown {
  if (value instanceof Error) return value.message;
  if (typeof value !== "object" || value === null) return value;
  if ("$typeName" in value) return value.$typeName;
  // A detail of an outgoing error has the descriptor of its message in `desc`. The log has only the name of the
  // message's type.
  const { desc } = value as { desc?: { typeName?: unknown } };
  return typeof desc?.typeName === "string" ? desc.typeName : value;
}

/** Returns a text without the parts that look like a credential. */
export function scrub(text: string): string {
  return text.replace(SECRET_TEXT, (_, scheme: string | undefined) =>
    scheme === undefined ? "[redacted]" : `${scheme} [redacted]`,
  );
}

function secretPaths(): string[] {
  return PLACES.flatMap((place) =>
    SECRET_KEYS.map((key) => (place === "" || key.startsWith("[") ? `${place}${key}` : `${place}.${key}`)),
  );
}
