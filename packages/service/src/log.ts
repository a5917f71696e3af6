import { type DestinationStream, type Logger, pino } from "pino";

export type { Logger };

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

export interface LogOptions {
  level: string;
  /** The name of the process, in every line. */
  name: string;
  /** Standard error by default: standard output belongs to what a command prints. */
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

// A scheme with credentials after it, and base64url of a text that begins `{"`, as tokens and proofs are.
const SECRET_TEXT = /\b(Bearer|DPoP)\s+[\w.~+/=-]{4,}|\beyJ[\w-]{8,}(?:\.[\w-]*)*/g;

/** Structured logs: one JSON object a line, with nothing in it that could be presented as a credential. */
export function createLogger({ level, name, destination = pino.destination(2) }: LogOptions): Logger {
  return pino(
    {
      level,
      base: { name, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: secretPaths(), censor: "[redacted]" },
      hooks: { streamWrite: scrub },
    },
    destination,
  );
}

/** A text without what looks like a credential. */
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
