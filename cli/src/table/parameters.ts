import type { Argument, Column, Flags, Parameter } from "./command.ts";

/** Creates a positional argument whose value becomes a field of the request. */
export function arg(name: string, field: string, help: string): Argument {
  return { name, field, help, type: "string", required: true };
}

export function text(field: string, help: string): Parameter {
  return { type: "string", field, help };
}

export function list(field: string, help: string): Parameter {
  return { type: "string", field, help: `${help}; repeatable`, repeated: true };
}

export function oneOf(field: string, prefix: string, values: readonly string[], help: string): Parameter {
  return { type: "enum", field, prefix, values, help };
}

export const AGENT = arg("AGENT", "agentId", "id of the agent");
export const TASK = arg("TASK", "taskId", "id of the task");

/** Creates the flag for a JSON document that becomes a field of the request. */
export function document(field: string, help: string): Flags {
  return {
    file: { type: "json", field, required: true, help: `${help}: JSON, @FILE, or - for standard input` },
  };
}

/** Flags of every command that calls the platform. */
export const REMOTE_FLAGS: Flags = {
  output: {
    type: "enum",
    short: "o",
    values: ["table", "wide", "json", "yaml", "id"],
    default: "table",
    help: "form of the output",
  },
  context: { type: "string", help: "the context to use, in place of the selected one" },
  server: { type: "string", help: "address of the platform, in place of the context's" },
  "key-file": { type: "file", help: "file with the caller's key: 32 bytes in base64url" },
  "ca-file": { type: "file", help: "PEM file with the authorities of the platform's certificate" },
  "client-cert-file": {
    type: "file",
    help: "PEM file with the caller's certificate, for platforms that ask for one",
  },
  "client-key-file": { type: "file", help: "PEM file with the certificate's key" },
  "token-file": { type: "file", help: "file with a DelegateOS token of the key's principal" },
  "secret-file": { type: "file", help: "file with a configured secret, sent as Bearer" },
  timeout: { type: "duration", default: "30s", help: "longest time for one answer" },
};

/** Flags of every list. */
export const LIST_FLAGS: Flags = {
  limit: { type: "int", default: "100", help: "most items to show; 1 to 10000" },
};

export const WATCH_FLAG: Flags = {
  watch: { type: "bool", short: "w", help: "show changes until interrupted" },
};

export const HELP_FLAG: Flags = { help: { type: "bool", short: "h", help: "show this help" } };

/** The columns of a table of tasks. */
export const TASK_COLUMNS: readonly Column[] = [
  ["ID", "id"],
  ["STATUS", "status", "enum:TASK_STATUS_"],
  ["AGENT", "agentId"],
  ["CAPABILITY", "capabilityId"],
  ["AGE", "createTime", "age"],
  ["DESCRIPTION", "description"],
];

export const TASK_STATUSES = [
  "pending",
  "accepted",
  "running",
  "suspended",
  "input-required",
  "in-review",
  "completed",
  "rejected",
  "failed",
  "cancelled",
  "expired",
  "revoked",
] as const;
