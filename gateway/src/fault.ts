import type { JsonValue } from "@bufbuild/protobuf";
import { type DeputeError, ErrorReason, isObject, reasonName } from "@depute/core";
import { fromConnectError } from "@depute/service";
import { type ErrorTable, rowOf } from "./error-table.ts";
import { JSON_RPC } from "./own-codes.ts";

/** An error of a JSON-RPC answer. */
export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data: JsonValue;
}

/** A refusal with the data that the wire's text wants to see, instead of what every refusal says. */
export class WireFault extends Error {
  readonly refusal: DeputeError;
  readonly data: JsonValue;

  constructor(refusal: DeputeError, data: JsonValue) {
    super(refusal.message, { cause: refusal });
    this.name = "WireFault";
    this.refusal = refusal;
    this.data = data;
  }
}

/** The refusal in whatever was thrown; INTERNAL for what is none. */
export function refusalIn(thrown: unknown): DeputeError {
  return thrown instanceof WireFault ? thrown.refusal : fromConnectError(thrown);
}

/** What a wire answers for whatever was thrown. The data always has the reason, which is the same on every wire. */
export function toRpcError(table: ErrorTable, thrown: unknown, requestId: string): RpcError {
  const refusal = refusalIn(thrown);
  const { code, message } = rowOf(table, refusal.reason);
  if (thrown instanceof WireFault) return { code, message, data: thrown.data };
  // A fault of the platform says nothing but where to look.
  if (refusal.reason === ErrorReason.INTERNAL) {
    return { code, message, data: { reason: "INTERNAL", metadata: { request_id: requestId } } };
  }
  return {
    code,
    message: code === JSON_RPC.INVALID_PARAMS.code ? `${message}: ${faultsOf(refusal)}` : message,
    data: {
      reason: reasonName(refusal.reason),
      detail: refusal.message,
      metadata: refusal.metadata,
      ...violationsOf(refusal),
    },
  };
}

/** The member `violations` of a refusal's data: what is wrong and where; no member when the refusal names nothing. */
export function violationsOf({ violations }: DeputeError) {
  if (violations.length === 0) return {};
  return { violations: violations.map(({ field, description }) => ({ path: field, message: description })) };
}

/** What follows a name in a field; empty when the field does not begin with it. */
function rest(field: string, name: string): string {
  return field.startsWith(name) ? field.slice(name.length) : "";
}

/** Each fault with its path, where the refusal names any. */
function faultsOf({ message, violations }: DeputeError): string {
  if (violations.length === 0) return message;
  return violations
    .map(({ field, description }) => (field === "" ? description : `${field}: ${description}`))
    .join("; ");
}

/** The same refusal with more metadata, which its data has as members where it has data of its own. */
export function withMetadata(thrown: unknown, more: Record<string, string>): WireFault | DeputeError {
  const refusal = refusalIn(thrown).with({ metadata: more, cause: thrown });
  if (!(thrown instanceof WireFault) || !isObject(thrown.data)) return refusal;
  return new WireFault(refusal, { ...thrown.data, ...more } as JsonValue);
}

/**
 * The same refusal with its fields named as the wire's document has them.
 *
 * @param names the document's JSON pointers by fields of the service's request: `draft.input` is `/in`
 */
export function renameFields(thrown: unknown, names: Readonly<Record<string, string>>): unknown {
  if (thrown instanceof WireFault) return thrown;
  const refusal = fromConnectError(thrown);
  if (refusal.violations.length === 0) return refusal;
  const rename = (field: string) => {
    const name = Object.keys(names).find((known) => field === known || /^[/.[]/.test(rest(field, known)));
    return name === undefined ? field : `${names[name]}${rest(field, name).replaceAll(".", "/")}`;
  };
  const violations = refusal.violations.map((each) => ({ ...each, field: rename(each.field) }));
  return refusal.with({ violations, cause: refusal });
}
