import type { JsonObject } from "@bufbuild/protobuf";
import { ErrorReason, reasonName } from "@depute/core";
import { type ToolServer, toolServer } from "@depute/mcp";
import { CHALLENGE } from "@depute/service";
import { errorTable } from "../../src/error-table.ts";
import { refusalIn, toRpcError } from "../../src/fault.ts";
import type { WireDeps } from "../../src/json-rpc-route.ts";
import type { WireCall } from "../../src/wire-call.ts";
import { INSTRUCTIONS, ownTools } from "./documents.ts";
import type { OwnClients } from "./methods.ts";

/** Depute itself as an MCP server, so that whatever speaks MCP can delegate. */
export function ownServer(clients: OwnClients, { log, timers }: WireDeps): ToolServer<WireCall> {
  return toolServer({
    name: "depute",
    version: "0.1.0",
    instructions: INSTRUCTIONS,
    tools: ownTools(clients),
    refusalOf: (thrown, { requestId }) => told(thrown, requestId),
    httpRefusalOf: challenge,
    timers,
    onError: (err) => log.debug({ err, path: "/mcp" }, "mcp"),
  });
}

/** Credentials that are missing or do not count are the client's business: 401 with the challenge (RFC 9449 7.1). */
function challenge(thrown: unknown, id: unknown, { requestId }: WireCall): Response | undefined {
  if (refusalIn(thrown).reason !== ErrorReason.UNAUTHENTICATED) return undefined;
  const error = toRpcError(ERRORS, thrown, requestId);
  return Response.json({ jsonrpc: "2.0", id, error }, { status: 401, headers: CHALLENGE });
}

const ERRORS = errorTable({});

/** A refusal as a model reads it; a fault of the platform says nothing but where to look. */
function told(thrown: unknown, requestId: string): JsonObject {
  const { reason, message, metadata, violations } = refusalIn(thrown);
  if (reason === ErrorReason.INTERNAL) return { reason: "INTERNAL", metadata: { request_id: requestId } };
  return {
    reason: reasonName(reason),
    detail: message,
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(violations.length === 0
      ? {}
      : { violations: violations.map(({ field, description }) => ({ path: field, message: description })) }),
  };
}
