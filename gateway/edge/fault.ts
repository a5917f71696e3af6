import type { JsonValue } from "@bufbuild/protobuf";
import { type DeputeError, ErrorReason, isObject, reasonName } from "@depute/core";
import { fromConnectError } from "@depute/service";
import { type ErrorTable, rowOf } from "./error-table.ts";
import { JSON_RPC } from "./own-codes.ts";

/** The error in a JSON-RPC answer. */
export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data: JsonValue;
}

/**
 * A refusal whose error data already has the form of the wire's protocol. This data replaces Depute's usual error data.
 */
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

/** Converts a thrown value to a DeputeError. An unexpected error becomes INTERNAL. */
export function refusalIn(thrown: unknown): DeputeError {
  return thrown instanceof WireFault ? thrown.refusal : fromConnectError(thrown);
}

/**
 * Converts a thrown value to the wire's error. The data of a WireFault is not changed. All other data contains the
 * reason, which is the same on every wire.
 */
export function toRpcError(table: ErrorTable, thrown: unknown, requestId: string): RpcError {
  const refusal = refusalIn(thrown);
  const { code, message } = rowOf(table, refusal.reason);
  if (thrown instanceof WireFault) return { code, message, data: thrown.data };
  // For an internal fault the client gets only the request id. The log contains the cause under this id.
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

/**
 * Returns an object with the member `violations`, which lists each fault with its field. The object is empty
 * if the refusal has no violations.
 */
export function violationsOf({ violations }: DeputeError) {
  if (violations.length === 0) return {};
  return { violations: violations.map(({ field, description }) => ({ path: field, message: description })) };
}

/** If the path `field` begins with `name`, returns the rest of the path; otherwise an empty text. */
function rest(field: string, name: string): string {
  return field.startsWith(name) ? field.slice(name.length) : "";
}

/** Returns the violations of a refusal, each with its path; without violations, the message of the refusal. */
function faultsOf({ message, violations }: DeputeError): string {
  if (violations.length === 0) return message;
  return violations
    .map(({ field, description }) => (field === "" ? description : `${field}: ${description}`))
    .join("; ");
}

/**
 * Adds metadata to a refusal. If the refusal has data in the form of the wire's protocol, this function adds the
 * metadata to that data too.
 */
export function withMetadata(thrown: unknown, more: Record<string, string>): WireFault | DeputeError {
  const refusal = refusalIn(thrown).with({ metadata: more, cause: thrown });
  if (!(thrown instanceof WireFault) || !isObject(thrown.data)) return refusal;
  return new WireFault(refusal, { ...thrown.data, ...more } as JsonValue);
}

/**
 * Replaces the service's field names in a refusal by the names in the client's JSON document.
 *
 * @param names the JSON pointer in the document for each field of the service's request, for example `/in` for
 * `draft.input`
 */
export function renameFields(thrown: unknown, names: Readonly<Record<string, string>>): unknown {
  if (thrown instanceof WireFault) return thrown;
  const refusal = fromConnectError(thrown);
  if (refusal.violations.length === 0) return refusal;
  const rename = (field: string) => {
    const name = Object.keys(names).find(
      (candidate) => field === candidate || /^[/.[]/.test(rest(field, candidate)),
    );
    return name === undefined ? field : `${names[name]}${rest(field, name).replaceAll(".", "/")}`;
  };
  const violations = refusal.violations.map((each) => ({ ...each, field: rename(each.field) }));
  const renamed = refusal.with({ violations, cause: refusal });
  // If the message is only the generated list of violations, generates the message again with the new names.
  return refusal.message === faultsOf(refusal)
    ? renamed.with({ message: faultsOf(renamed), cause: refusal })
    : renamed;
}
