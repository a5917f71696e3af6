import {
  CompleteParamsSchema,
  CompleteResultSchema,
  DelegateParamsSchema,
  DelegateResultSchema,
  RevokeParamsSchema,
  RevokeResultSchema,
} from "@depute/contracts/delegateos/v0/delegateos_jsonrpc_pb";
import { encode } from "@depute/wire";
import type { Clients } from "../../edge/clients.ts";
import { type JsonRpcEndpoint, type JsonRpcMethod, readParams } from "../../edge/json-rpc.ts";
import { jsonRpcErrors } from "../../edge/json-rpc-errors.ts";
import { json, type Wire } from "../../edge/route.ts";
import { revocationList } from "./documents.ts";
import { DELEGATEOS_ERRORS } from "./errors.ts";
import type { DelegateosMethods } from "./methods.ts";

/** The DelegateOS wire: JSON-RPC, and the list of revocations that verifiers poll. */
export function delegateosWire(methods: DelegateosMethods, clients: Clients): Wire {
  const knownEndpoint = endpoint(methods);
  return {
    name: "delegateos",
    claims: ["/delegateos"],
    toError: jsonRpcErrors(DELEGATEOS_ERRORS),
    routes: [
      { kind: "json-rpc", path: "/delegateos", endpoint: () => knownEndpoint },
      {
        method: "GET",
        path: "/delegateos/revocations",
        query: ["since", "page_size"],
        answer: async ({ query, call }) => json(await revocationList(clients, query, call)),
      },
    ],
  };
}

/**
 * Creates the JSON-RPC endpoint. All three methods answer, although DelegateOS defines `delegateos/complete` and
 * `delegateos/revoke` only as notifications.
 */
function endpoint(methods: DelegateosMethods): JsonRpcEndpoint {
  const calls: Record<string, JsonRpcMethod> = {
    "delegateos/delegate": async (params, call) =>
      encode(DelegateResultSchema, await methods.delegate(readParams(DelegateParamsSchema, params), call)),
    "delegateos/complete": async (params, call) =>
      encode(CompleteResultSchema, await methods.complete(readParams(CompleteParamsSchema, params), call)),
    "delegateos/revoke": async (params, call) =>
      encode(RevokeResultSchema, await methods.revoke(readParams(RevokeParamsSchema, params), call)),
  };
  return { methods: new Map(Object.entries(calls)), errors: DELEGATEOS_ERRORS };
}
