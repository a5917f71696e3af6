import { expect, it } from "vitest";
import type { AuditEntry } from "./audit-record.ts";
import { callsOf, decisionsOn } from "./tool-calls.ts";

const at = (id: number, kind: AuditEntry["kind"], change: Partial<AuditEntry> = {}): AuditEntry => ({
  ...{ id, kind, caller: "", principal: "p", decision: "allowed", reason: "", blocks: [], time: id },
  ...{ source: "tokens", call: { resource: "mcp/files/read", requestId: "r" } },
  ...change,
});
const ids = (entries: readonly AuditEntry[]) => entries.map(({ id }) => id);

const token = at(2, "verify_token");

it.each<[string, AuditEntry[], number[]]>([
  ["the token's decision stands for the call", [token, at(3, "call_tool")], [2]],
  ["each verified token is a call", [token, at(3, "call_tool"), at(4, "verify_token")], [2, 4]],
  ["a call without a token has the gateway's decision", [at(3, "call_tool")], [3]],
  ["no decision, no call", [], []],
])("%s", (_, decisions, calls) => {
  expect(ids(callsOf(decisions))).toEqual(calls);
});

it.each<[string, AuditEntry[], number[]]>([
  ["the gateway's decision follows", [at(3, "call_tool")], [2, 3]],
  ["a denial without a proven holder counts", [at(3, "call_tool", { principal: "" })], [2, 3]],
  ["the decision on another holder's call does not", [at(3, "call_tool", { principal: "q" })], [2]],
  ["an earlier one does not", [at(1, "call_tool")], [2]],
  ["one about another tool does not", [at(3, "call_tool", { call: { resource: "mcp/files/write" } })], [2]],
  ["only the first does", [at(3, "call_tool"), at(4, "call_tool", { decision: "denied" })], [2, 3]],
])("%s", (_, others, expected) => {
  expect(ids(decisionsOn(token, [token, ...others]))).toEqual(expected);
});
