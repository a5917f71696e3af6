import { ErrorReason, Status, statusOf } from "@depute/core";
import { errorAnswer, requestStatusOf } from "@depute/service";
import { refusalIn } from "../../edge/fault.ts";
import type { WireError } from "../../edge/route.ts";
import { detailsOf } from "./errors.ts";

const STATUS_NAMES = new Map<number, string>(Object.entries(Status).map(([name, number]) => [number, name]));

/**
 * Converts an error to HTTP+JSON: the member `error` contains a google.rpc.Status, whose code is the HTTP status. (A2A
 * 11.6)
 */
export function httpError(thrown: unknown, requestId: string): WireError {
  const refusal = refusalIn(thrown);
  const { reason } = refusal;
  const status = requestStatusOf(refusal) ?? errorAnswer(refusal, requestId).status;
  const message = reason === ErrorReason.INTERNAL ? "internal error" : refusal.message;
  const name = STATUS_NAMES.get(statusOf(reason)) ?? "INTERNAL";
  return {
    status,
    body: { error: { code: status, status: name, message, details: detailsOf(refusal, requestId) } },
  };
}
