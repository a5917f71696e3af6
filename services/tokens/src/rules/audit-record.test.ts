import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { AuditDecision, AuditFilterSchema } from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { toTimestamp } from "@depute/core";
import { expect, it } from "vitest";
import { fromFilter } from "./audit-message.ts";
import { type AuditedDecision, matchesAudit, toolRequestOf } from "./audit-record.ts";

const [BLOCK, OTHER] = ["B".repeat(43), "C".repeat(43)];
const TIME = Date.UTC(2026, 1, 17, 12);

const entry: AuditedDecision = {
  ...{ kind: "call", caller: "ada", principal: "bob", decision: "denied", reason: "revoked" },
  ...{ blocks: [BLOCK], time: TIME, source: "tasks" },
  call: { organization: "acme", resource: "tasks/t-1", rpc: "a.b.C/Do", requestId: "request-1" },
};

// If the service ignored a member of the filter, that filter would match every record. So each row has one value that
// matches the record, and one value that does not.
it.each<[keyof MessageInitShape<typeof AuditFilterSchema> & string, unknown, unknown]>([
  ["caller", "ada", "eve"],
  ["principal", "bob", "ada"],
  ["organization", "acme", "globex"],
  ["kind", "call", "mint"],
  ["decision", AuditDecision.DENIED, AuditDecision.ALLOWED],
  ["revocationId", BLOCK, OTHER],
  ["resource", "tasks/t-1", "tasks/t-2"],
  ["rpc", "a.b.C/Do", "a.b.C/Other"],
  ["requestId", "request-1", "request-2"],
  ["source", "tasks", "gateway"],
  ["startTime", toTimestamp(TIME), toTimestamp(TIME + 1)],
  ["endTime", toTimestamp(TIME + 1), toTimestamp(TIME)],
])("%s selects a record, and leaves out others", (name, selecting, other) => {
  const matches = (filter: object) => matchesAudit(entry, fromFilter(create(AuditFilterSchema, filter)));
  expect(matches({ [name]: selecting })).toBe(true);
  expect(matches({ [name]: other })).toBe(false);
  expect(matches({ source: "tasks", caller: "ada", [name]: other })).toBe(false);
});

it("covers every field of the contract's filter", () => {
  const names = AuditFilterSchema.fields.map(({ localName }) => localName);
  expect(names.sort()).toEqual(
    [
      ...["caller", "principal", "organization", "kind", "decision", "revocationId", "resource", "rpc"],
      ...["requestId", "source", "startTime", "endTime"],
    ].sort(),
  );
});

it.each<[string, Partial<AuditedDecision>, string | undefined]>([
  ["a verified token of a tool call", { kind: "verify_token" }, "r"],
  ["a decision of the gateway on the whole call", { kind: "call_tool" }, "r"],
  ["another decision about the same resource", { kind: "reserve" }, undefined],
  ["a call without a request id", { kind: "call_tool", call: { resource: "mcp/a/b" } }, undefined],
  ["a token for no tool", { kind: "verify_token", call: { resource: "", requestId: "r" } }, undefined],
])("%s is found by its request id: %#", (_, change, found) => {
  const call = { resource: "mcp/files/read", requestId: "r" };
  expect(toolRequestOf({ ...entry, call, ...change })).toBe(found);
});
