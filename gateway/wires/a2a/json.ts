import {
  type DescEnum,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import { type ListTasksResponse, ListTasksResponseSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { DeputeError, invalid, isObject } from "@depute/core";
import { assertValid, jsonFieldFault } from "@depute/service";

/**
 * Reads a message from ProtoJSON and checks the rules of its contract. Unknown members are ignored. (A2A 5.7)
 *
 * @throws DeputeError INVALID_REQUEST
 */
export function readMessage<Desc extends DescMessage>(schema: Desc, json: unknown): MessageShape<Desc> {
  const message = parsed(schema, json);
  assertValid(schema, message);
  return message;
}

function parsed<Desc extends DescMessage>(schema: Desc, json: unknown): MessageShape<Desc> {
  const document = (json ?? {}) as JsonValue;
  try {
    const message = fromJson(schema, document, OPTIONS);
    refuseUnknownValues(schema, document, "");
    return message;
  } catch (thrown) {
    if (thrown instanceof DeputeError) throw thrown;
    throw invalid(...faultOf(schema, document, thrown));
  }
}

const OPTIONS = { ignoreUnknownFields: true };

/**
 * Returns the field at fault and the problem. For some faults, such as a malformed time, the decoder names no field. The
 * function then decodes each field alone to find the faulty one.
 */
function faultOf(
  schema: DescMessage,
  document: JsonValue,
  thrown: unknown,
): [field: string, problem: string] {
  const text = thrown instanceof Error ? thrown.message : "is not of this form";
  const fault = jsonFieldFault(text);
  if (fault !== undefined) return [fault.field, fault.problem];
  const members = isObject(document) ? document : {};
  const found = schema.fields.find((field) => {
    const value = memberOf(members, field);
    return value !== undefined && !isReadable(schema, { [field.jsonName]: value });
  });
  const problem = text.replace(/^cannot decode [\w. ]+ from JSON: /, "");
  return [found?.name ?? "", problem.slice(0, MAX_PROBLEM).toWellFormed()];
}

/** Maximum number of characters that a refusal quotes from the decoder's description of a fault. */
const MAX_PROBLEM = 200;

function isReadable(schema: DescMessage, document: JsonObject): boolean {
  try {
    fromJson(schema, document, OPTIONS);
    return true;
  } catch {
    return false;
  }
}

/**
 * Refuses words that an enum does not have. The decoder ignores them together with unknown members, and a filter with
 * a misspelt word would then filter nothing. (A2A 3.1.4)
 *
 * @throws DeputeError INVALID_REQUEST that lists the words
 */
function refuseUnknownValues(schema: DescMessage, document: JsonValue, path: string): void {
  if (schema.typeName.startsWith("google.protobuf.") || !isObject(document)) return;
  for (const field of schema.fields) {
    const value = memberOf(document as JsonObject, field);
    if (value === undefined) continue;
    const place = `${path}${field.name}`;
    for (const element of Array.isArray(value) ? value : [value]) {
      if (field.enum !== undefined) refuseUnknownWord(field.enum, element, place);
      if (field.message !== undefined && field.fieldKind !== "map")
        refuseUnknownValues(field.message, element, `${place}.`);
    }
  }
}

function refuseUnknownWord({ values }: DescEnum, word: JsonValue, field: string): void {
  if (typeof word !== "string" || values.some(({ name }) => name === word)) return;
  const words = values.filter(({ number }) => number !== 0).map(({ name }) => name);
  throw invalid(field, `must be one of ${words.join(", ")}`);
}

/** Returns a member by its name in JSON or in the contract, as the decoder accepts both. */
function memberOf(document: JsonObject, { jsonName, name }: DescField): JsonValue | undefined {
  return document[jsonName] ?? document[name] ?? undefined;
}

/** Writes a message as ProtoJSON. */
export function writeMessage<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): JsonValue {
  return toJson(schema, message);
}

/** Returns a page of tasks as ProtoJSON. Its REQUIRED members are present even if they are empty. (A2A 3.1.4) */
export function writePage(page: ListTasksResponse): JsonObject {
  const { nextPageToken, pageSize, totalSize } = page;
  const { tasks = [] } = toJson(ListTasksResponseSchema, page) as JsonObject;
  return { tasks, nextPageToken, pageSize, totalSize };
}
