import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { pause, systemTimers } from "@depute/core";
import { CommandError } from "../exit-codes.ts";
import { valueAt } from "../print/cells.ts";
import type { Call, Invocation } from "../table/command.ts";
import { type Connection, connected, isInterrupted } from "./connection.ts";
import { eventRow } from "./event-row.ts";
import { type Form, ItemPrinter, isDocument, printDocument, remark } from "./output.ts";
import { merged, requestFrom } from "./request.ts";
import { loadService } from "./services.ts";

/** Maximum number of items on one page. */
const PAGE = 100;
const MAX_LIMIT = 10_000;
/** Maximum number of items in a list that the command follows. */
const MAX_FOLLOWED = 1_000;

/** Milliseconds between two reads of a list, if no RPC streams the list. */
const POLL_MS = 2_000;

/** Runs a command that consists of one RPC. */
export async function runCall(invocation: Invocation): Promise<void> {
  const { call } = invocation.command;
  if (call === undefined) throw new Error(`${invocation.command.path} has no call`);
  const request = merged(call.request ?? {}, requestFrom(invocation));
  const form = invocation.values.output as Form;
  await connected(invocation, async (connection) => {
    try {
      if (call.stream !== undefined && !call.list) return await follow(connection, call, request, form);
      if (!call.list) return await once(connection, call, request, form);
      const limit = limitOf(invocation);
      if (invocation.values.watch !== true) return await list(connection, call, request, { form, limit });
      if (await hasStreamFor(call, request)) {
        const size = call.stream?.isList === true ? { pageSize: Math.min(limit, MAX_FOLLOWED) } : {};
        return await follow(connection, call, { ...request, ...size }, form);
      }
      await poll(connection, call, request, { form, limit });
    } catch (error) {
      if (!isInterrupted(error, connection)) throw error;
    }
  });
}

async function once(connection: Connection, call: Call, request: JsonObject, form: Form): Promise<void> {
  const answer = await connection.call(call.service, call.method, request);
  const item = itemOf(answer, call.shown.item);
  // The list has no pages: the response contains the whole list.
  if (Array.isArray(item) && isDocument(form)) await printDocument(form, { [call.shown.item]: item });
  else if (Array.isArray(item)) await new ItemPrinter(form, call.shown).print(item);
  else if (isDocument(form) || (call.describe && form !== "id")) await printDocument(form, item);
  else await new ItemPrinter(form, call.shown).print([item]);
}

function itemOf(answer: JsonObject, field: string): JsonObject | JsonValue[] {
  return field === "" ? answer : ((answer[field] ?? {}) as JsonObject | JsonValue[]);
}

interface Listing {
  readonly form: Form;
  readonly limit: number;
}

async function list(
  connection: Connection,
  call: Call,
  request: JsonObject,
  { form, limit }: Listing,
): Promise<void> {
  const { items, hasMore } = await readAll(connection, call, request, limit);
  if (isDocument(form)) await printDocument(form, { [call.shown.item]: items });
  else if (items.length > 0) await new ItemPrinter(form, call.shown).print(items);
  else remark("Nothing found.");
  if (hasMore) remark(`There are more than ${limit}; raise --limit to see them.`);
}

async function readAll(connection: Connection, call: Call, request: JsonObject, limit: number) {
  const items: JsonValue[] = [];
  let pageToken = "";
  do {
    const page = { ...request, pageSize: Math.min(PAGE, limit - items.length), pageToken };
    const answer = await connection.call(call.service, call.method, page);
    items.push(...((answer[call.shown.item] ?? []) as JsonValue[]));
    pageToken = String(answer.nextPageToken ?? "");
  } while (pageToken !== "" && items.length < limit);
  return { items, hasMore: pageToken !== "" };
}

/**
 * Whether `--watch` can follow a stream instead of reading the list at intervals. The request of the stream must have
 * every field that the user has set for the list.
 */
async function hasStreamFor({ service, stream }: Call, request: JsonObject): Promise<boolean> {
  if (stream === undefined) return false;
  const fields = (await loadService(service)).method[stream.method]?.input.fields ?? [];
  return Object.keys(request).every((name) => fields.some(({ jsonName }) => jsonName === name));
}

/** Follows a stream until it ends, or until Ctrl-C. */
async function follow(connection: Connection, call: Call, request: JsonObject, form: Form): Promise<void> {
  const { stream, service, shown } = call;
  if (stream === undefined) return;
  const printer = new ItemPrinter(form, shown);
  const full = merged(stream.request ?? {}, request);
  for await (const message of connection.stream(service, stream.method, full)) {
    const item = valueAt(message, stream.item);
    if (item === undefined) continue;
    if (stream.isList) {
      // A response lists its newest item first. In a terminal the newest line is the last one, so the order is
      // reversed.
      await printer.print((item as JsonValue[]).toReversed());
      continue;
    }
    const isRow = form === "table" || form === "wide";
    await printer.print([isRow && stream.item === "taskEvent" ? eventRow(item as JsonObject) : item]);
  }
}

/** Reads a list at intervals, and prints the items that are new or changed. */
async function poll(
  connection: Connection,
  call: Call,
  request: JsonObject,
  { form, limit }: Listing,
): Promise<void> {
  const printer = new ItemPrinter(form, call.shown);
  let knownTexts = new Set<string>();
  while (!connection.signal.aborted) {
    const { items } = await readAll(connection, call, request, limit);
    const texts = items.map((item) => JSON.stringify(item));
    const changed = items.filter((_, index) => !knownTexts.has(texts[index] ?? ""));
    if (changed.length > 0) await printer.print(changed.toReversed());
    knownTexts = new Set(texts);
    await pause(POLL_MS, systemTimers, connection.signal);
  }
}

function limitOf({ values }: Invocation): number {
  const limit = Number(values.limit);
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT) return limit;
  throw new CommandError(
    `--limit is ${JSON.stringify(values.limit)}, but must be a number from 1 to ${MAX_LIMIT}`,
  );
}
