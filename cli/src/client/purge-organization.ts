import type { JsonObject } from "@bufbuild/protobuf";
import type { Column, Invocation, ServiceName } from "../table/command.ts";
import { connected } from "./connection.ts";
import { type Form, ItemPrinter, isDocument, remark } from "./output.ts";

/** Maximum number of calls to one service in one run of the command. The next run continues the purge. */
const MAX_CALLS = 10_000;

/**
 * The services that hold an organization's data, in the order of their purge. The tasks service is first, because tasks
 * use the records of all other services. The registry is last, because the other services still report outcomes of
 * agents' work to it.
 */
const SERVICES: readonly { readonly service: string; readonly client: ServiceName }[] = [
  { service: "tasks", client: "tasks" },
  { service: "verifier", client: "contracts" },
  { service: "tokens", client: "delegations" },
  { service: "registry", client: "organizations" },
];

/** The result of the purge of one service. */
export interface ServicePurge {
  readonly deletedCount: number;
  readonly calls: number;
  /** The numbers of deleted records, by kind. Empty for the tasks service, which does not count by kind. */
  readonly deleted: Readonly<Record<string, number>>;
  readonly remaining: readonly JsonObject[];
  /** Whether the service has more records to delete, so that another run is needed. */
  readonly more: boolean;
}

const COLUMNS: readonly Column[] = [
  ["SERVICE", "service"],
  ["DELETED", "deletedCount", "number"],
  ["MORE", "more", "flag"],
  ["RECORDS", "records"],
];
const WIDE: readonly Column[] = [
  ["CALLS", "calls", "number"],
  ["REMAINING", "kept"],
];

/** `depute organizations purge ORGANIZATION`. A repeated run deletes the remaining records. */
export async function purgeOrganization(invocation: Invocation): Promise<void> {
  const { values } = invocation;
  const form = values.output as Form;
  const request = {
    organization: String(values.ORGANIZATION),
    ...(values.max !== undefined && { maxCount: Number(values.max) }),
  };
  const reason = values.reason === undefined ? {} : { reason: String(values.reason) };
  await connected(invocation, async (connection) => {
    const printer = new ItemPrinter(form, { columns: COLUMNS, wide: WIDE });
    for (const { service, client } of SERVICES) {
      const fields = service === "tasks" ? { ...request, ...reason } : request;
      const purged = await purgeService(() => connection.call(client, "purgeOrganization", fields));
      await printer.print([toItem(service, purged, form)]);
    }
  });
  if (!isDocument(form)) remark("docs/operations.md says what remains, and why; -o json names it.");
}

/**
 * Calls one service until the service has nothing more to delete, at most MAX_CALLS times.
 *
 * @param call makes one call with a new request id
 */
export async function purgeService(call: () => Promise<JsonObject>): Promise<ServicePurge> {
  const deleted: Record<string, number> = {};
  let deletedCount = 0;
  let answer: JsonObject = { more: true };
  let calls = 0;
  for (; answer.more === true && calls < MAX_CALLS; calls++) {
    answer = await call();
    deletedCount += Number(answer.deletedCount ?? 0);
    for (const { kind, count } of (answer.deleted ?? []) as JsonObject[]) {
      deleted[String(kind)] = (deleted[String(kind)] ?? 0) + Number(count);
    }
  }
  const remaining = (answer.remaining ?? []) as JsonObject[];
  return { deletedCount, calls, deleted, remaining, more: answer.more === true };
}

/**
 * Converts the result of one service to a document. For a table, adds the texts of the columns RECORDS and REMAINING.
 */
function toItem(service: string, purged: ServicePurge, form: Form): JsonObject {
  const { deleted, remaining, ...rest } = purged;
  const item = { service, ...rest, deleted: { ...deleted }, remaining: [...remaining] };
  if (isDocument(form)) return item;
  const records = Object.entries(deleted).map(([kind, count]) => `${count} ${kind}`);
  const kept = remaining.map(({ kind, count }) => (count === undefined ? `${kind}` : `${count} ${kind}`));
  return { ...item, records: records.join(", "), kept: kept.join(", ") };
}
