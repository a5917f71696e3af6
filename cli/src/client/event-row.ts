import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** The members that all kinds of events share. Any other member is the event's payload. */
const COMMON = new Set([
  "taskId",
  "sequence",
  "eventTime",
  "status",
  "previousStatus",
  "verification",
  "attestationId",
]);

/** Converts a task's event to a row: the name of its payload, and the content of the payload in one line. */
export function eventRow(event: JsonObject): JsonObject {
  const [type = "", payload] = Object.entries(event).find(([name]) => !COMMON.has(name)) ?? [];
  return { ...event, type: words(type), detail: detailOf(type, payload) };
}

function words(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function detailOf(type: string, payload: JsonValue | undefined): string {
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) return "";
  if (type === "progress") {
    const { processed = 0, total = 0, message = "" } = payload;
    return `${processed}/${total} ${message}`.trim();
  }
  if (type === "completed") return JSON.stringify((payload.output as JsonObject | undefined)?.full ?? null);
  if ("reason" in payload && "message" in payload) return `${payload.reason}: ${payload.message}`;
  const text = JSON.stringify(payload);
  return text === "{}" ? "" : text;
}
