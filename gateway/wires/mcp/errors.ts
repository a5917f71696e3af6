import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ErrorReason, reasonName } from "@depute/core";
import { certificateOfRequest, HttpRefusal } from "@depute/service";
import { errorTable } from "../../edge/error-table.ts";
import { refusalIn, toRpcError, violationsOf } from "../../edge/fault.ts";
import { jsonRpcErrors } from "../../edge/json-rpc-errors.ts";
import type { WebWireRequest } from "../../edge/route.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import type { WireDeps } from "../../edge/wire-deps.ts";
import { challengeHeaders } from "./login.ts";

const ERRORS = errorTable({});

const spell = jsonRpcErrors(ERRORS);

/**
 * Returns the function that converts an exception to the HTTP error answer at MCP's addresses.
 *
 * @param served returns the addresses of servers; the refusal of an unknown server lists them
 */
export function mcpErrors(served: () => readonly string[]): typeof spell {
  return (thrown, requestId) => {
    if (!(thrown instanceof HttpRefusal) || thrown.status !== 404) return spell(thrown, requestId);
    const { metadata } = thrown;
    if (metadata.method?.startsWith("/mcp") !== true) return spell(thrown, requestId);
    const message = `no MCP server has this address: use ${served().join(", ")}`;
    return spell(new HttpRefusal(404, ErrorReason.UNKNOWN_METHOD, message, { metadata }), requestId);
  };
}

/**
 * Answers missing or invalid credentials at `path` with 401 and the challenge (RFC 9449 7.1, RFC 9728 5.1). Returns
 * undefined for any other error. An error inside the result would reach the model, but only the client can present
 * other credentials.
 */
export function challenge(
  path: string,
  thrown: unknown,
  id: unknown,
  { requestId }: Pick<WireCall, "requestId">,
  deps: WireDeps,
): Response | undefined {
  if (refusalIn(thrown).reason !== ErrorReason.UNAUTHENTICATED) return undefined;
  const error = toRpcError(ERRORS, thrown, requestId);
  const headers = challengeHeaders(path, thrown, deps);
  return Response.json({ jsonrpc: "2.0", id, error }, { status: 401, headers });
}

/**
 * Returns the principal of a request's login, or the answer that asks for a login.
 *
 * @param path the address of the MCP server
 * @param id the id of the request
 * @throws the errors of `loginOf` except UNAUTHENTICATED
 */
export async function loginOrChallenge(
  path: string,
  { received, call }: WebWireRequest,
  id: JsonValue,
  deps: WireDeps,
): Promise<string | Response> {
  try {
    return await deps.loginOf(received.headers, certificateOfRequest(received));
  } catch (thrown) {
    const refused = challenge(path, thrown, id, call, deps);
    if (refused === undefined) throw thrown;
    return refused;
  }
}

/**
 * Converts an error to a form for language models. If the error is internal, the form contains only the request id, and
 * the log contains the cause under this id.
 */
export function refusalForModel(thrown: unknown, requestId: string): JsonObject {
  const refusal = refusalIn(thrown);
  const { reason, message, metadata } = refusal;
  if (reason === ErrorReason.INTERNAL) return { reason: "INTERNAL", metadata: { request_id: requestId } };
  return {
    reason: reasonName(reason),
    detail: message,
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...violationsOf(refusal),
  };
}
