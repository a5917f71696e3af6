import { expect } from "vitest";
import type { Json } from "./platform.ts";
import type { RawAnswer } from "./raw-clients.ts";

/** Returns the reason of an error. The error must have the form of the wire that owns the path. */
export function reasonIn(path: string, { bytes, status }: RawAnswer): string {
  const error = JSON.parse(bytes.toString()) as Json;
  const forms = FORMS.filter(([prefix]) => prefix.test(path));
  expect([path, forms.length]).toEqual([path, 1]);
  return forms[0]?.[1](error, status) ?? "";
}

/** For each wire's paths: a function that checks the form of an error and returns the reason. */
const FORMS: readonly [RegExp, (error: Json, status: number) => string][] = [
  [/^\/(nekte|delegateos|mcp)(\/|$)/, rpcReason],
  [
    // JSON-RPC, or the form of HTTP+JSON.
    /^\/a2a(\/|$)/,
    ({ jsonrpc, id, error }, status) => {
      if (jsonrpc === undefined) expect([error.code, typeof error.status]).toEqual([status, "string"]);
      else expect([jsonrpc, id, typeof error.code]).toEqual(["2.0", null, "number"]);
      return (error.data ?? error.details)[0].reason;
    },
  ],
  [
    /^\/cap\//,
    (error, status) => {
      expect([error.type, error.error_code]).toEqual(["error_response", status]);
      return error.reason;
    },
  ],
  [
    /^\/agenta\//,
    ({ error }) => {
      expect(error.code).toMatch(/^[a-z_]+$/);
      expect(error.retryable).toBeTypeOf("boolean");
      return error.details.reason;
    },
  ],
  [
    /^\/v1\/asp\//,
    ({ error }) => {
      expect(error.code).toBeTypeOf("string");
      return error.reason;
    },
  ],
  [
    // RFC 6749, section 5.2.
    /^\/oauth\//,
    ({ error, error_description, reason }) => {
      expect([typeof error, typeof error_description]).toEqual(["string", "string"]);
      return reason;
    },
  ],
  [/^\/((depute|nekte|lf)\.[\w.]+|log|agents)\//, ({ details }) => details[0].debug.reason],
];

function rpcReason({ jsonrpc, id, error }: Json): string {
  expect([jsonrpc, id, typeof error.code]).toEqual(["2.0", null, "number"]);
  return error.data.reason;
}
