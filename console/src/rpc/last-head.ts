import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type LogHead, LogHeadSchema } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { decodeBase64Url, encodeBase64Url } from "@depute/core";

/** Returns the key under which the storage has the head of a log. Each log has its own key. */
const placeOf = (log: string) => `depute.log-head.${log}`;

/**
 * Returns the head of a log that this browser verified last. A head is public, so the browser keeps it after the tab
 * has closed.
 *
 * @returns undefined if no readable head is stored
 */
export function readLastHead(log: string, storage: Storage = localStorage): LogHead | undefined {
  const bytes = decodeBase64Url(storage.getItem(placeOf(log)) ?? "");
  if (bytes === undefined || bytes.length === 0) return undefined;
  try {
    const head = fromBinary(LogHeadSchema, bytes);
    return head.log === log ? head : undefined;
  } catch {
    return undefined;
  }
}

export function storeLastHead(head: LogHead, storage: Storage = localStorage): void {
  storage.setItem(placeOf(head.log), encodeBase64Url(toBinary(LogHeadSchema, create(LogHeadSchema, head))));
}
