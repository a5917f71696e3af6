import {
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import { type ListTasksResponse, ListTasksResponseSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { invalid } from "@depute/core";
import { assertValid } from "@depute/service";

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
  try {
    return fromJson(schema, (json ?? {}) as JsonValue, { ignoreUnknownFields: true });
  } catch (thrown) {
    const text = thrown instanceof Error ? thrown.message : "is not of this form";
    const [, field = "", problem = text] =
      /^cannot decode (?:field|oneof) [\w.]*?\.(\w+) from JSON(?:: (.*))?$/s.exec(text) ?? [];
    throw invalid(field, (problem ?? text).slice(0, MAX_PROBLEM).toWellFormed());
  }
}

/** Maximum number of characters that a refusal quotes from the parser's description of a fault. */
const MAX_PROBLEM = 200;

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
