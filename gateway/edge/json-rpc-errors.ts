import { reasonName } from "@depute/core";
import { errorAnswer, requestStatusOf } from "@depute/service";
import type { ErrorTable } from "./error-table.ts";
import { refusalIn, toRpcError } from "./fault.ts";
import { JSON_RPC, OWN } from "./own-codes.ts";
import type { WireError } from "./route.ts";

/**
 * Returns a function that converts an exception to a JSON-RPC error response. The function is for requests that fail
 * before any call is read, so the response's id is null.
 */
export function jsonRpcErrors(table: ErrorTable): (thrown: unknown, requestId: string) => WireError {
  return (thrown, requestId) => {
    const refusal = refusalIn(thrown);
    const status = requestStatusOf(refusal);
    if (status === undefined) {
      const error = { ...toRpcError(table, thrown, requestId) };
      return { status: errorAnswer(refusal, requestId).status, body: { jsonrpc: "2.0", id: null, error } };
    }
    const { reason, message: detail, metadata } = refusal;
    const error = { ...ROWS[status], data: { reason: reasonName(reason), detail, metadata } };
    return { status, body: { jsonrpc: "2.0", id: null, error } };
  };
}

const ROWS = {
  404: OWN.NOT_FOUND,
  405: JSON_RPC.INVALID_REQUEST,
  406: JSON_RPC.INVALID_REQUEST,
  408: OWN.DEADLINE_EXCEEDED,
  413: OWN.LIMIT_EXCEEDED,
  415: JSON_RPC.INVALID_REQUEST,
} as const;
