import {
  CompleteParamsSchema,
  CompleteResultSchema,
  DelegateParamsSchema,
  DelegateResultSchema,
  RevokeParamsSchema,
  RevokeResultSchema,
} from "@depute/contracts/delegateos/v0/jsonrpc_pb";
import { type HttpRoute, sendJson } from "@depute/service";
import { encode } from "@depute/wire";
import type { Clients } from "../../src/clients.ts";
import { type JsonRpcEndpoint, type JsonRpcMethod, readParams } from "../../src/json-rpc.ts";
import { jsonRpcRoute, type WireDeps } from "../../src/json-rpc-route.ts";
import { wireCall } from "../../src/wire-call.ts";
import { revocationList } from "./documents.ts";
import { DELEGATEOS_ERRORS } from "./errors.ts";
import type { DelegateosMethods } from "./methods.ts";

/** The DelegateOS wire: JSON-RPC, and the list of revocations that verifiers poll. */
export function delegateosRoutes(methods: DelegateosMethods, clients: Clients, deps: WireDeps): HttpRoute[] {
  const known = endpoint(methods);
  return [
    jsonRpcRoute("/delegateos", () => known, deps),
    {
      methods: ["GET"],
      path: "/delegateos/revocations",
      async handle(request, response) {
        const query = new URLSearchParams(request.url?.split("?").slice(1).join("?"));
        const call = wireCall(request, response, deps.publicUrl);
        sendJson(response, 200, await revocationList(clients, query, call));
      },
    },
  ];
}

/** All three methods answer when they are sent with an id; the text has the last two as notifications only. */
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
