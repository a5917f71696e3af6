import { create, fromBinary, type JsonObject, type JsonValue, toBinary } from "@bufbuild/protobuf";
import { type AgentManifest, AgentManifestSchema } from "@depute/contracts/cap/v1/manifest_pb";
import { CapMessageSchema } from "@depute/contracts/cap/v1/message_pb";
import { expect, test } from "vitest";
import { decode, decodeValid, encode } from "./index.ts";
import { readFixture } from "./testing/fixtures.ts";

const MANIFEST = readFixture("cap/manifest-analyst-1.json") as JsonObject;
const NOTICE = readFixture("cap/example-04-delegation-to-analyst.json") as JsonObject;

test.each<[JsonObject, AgentManifest["overseer"]["case"]]>([
  [{}, undefined],
  [{ overseer: null }, "overseerNull"],
  [{ overseer: "qa-1" }, "overseerId"],
])("an overseer of %j stays distinct", (overseer, expected) => {
  const { overseer: _, ...rest } = MANIFEST;
  const document = { ...rest, ...overseer };
  const decoded = decodeValid(AgentManifestSchema, document);
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
  expect(decoded.message.overseer.case).toBe(expected);
  const again = fromBinary(AgentManifestSchema, toBinary(AgentManifestSchema, decoded.message));
  expect(encode(AgentManifestSchema, again)).toEqual(document);
});

test.each<[string, JsonValue, string, string]>([
  ["overseer", 5, "/overseer", "wrong_type"],
  ["overseer", "", "/overseer", "broken_rule"],
  ["id", "no spaces", "/id", "broken_rule"],
  ["delegate_rules", { "qa-1": "always" }, "/delegate_rules/qa-1", "wrong_type"],
  ["delegate_rules", { "qa-1": {} }, "/delegate_rules/qa-1/when_to_delegate", "missing_member"],
  ["delegate_rules", { "pm-1": { when_to_delegate: "Always." } }, "", "broken_rule"],
  ["delegate_rules", { "a b": { when_to_delegate: "Always." } }, "/delegate_rules/a b", "broken_rule"],
  ["allowed_agents", null, "/allowed_agents", "wrong_type"],
  ["mcp_bindings", [{ server_id: "S", scopes: [] }], "/mcp_bindings/0/allowed_tools", "missing_member"],
])("refuses a manifest with %s %j", (name, value, path, reason) => {
  const decoded = decodeValid(AgentManifestSchema, { ...MANIFEST, [name]: value });
  expect(decoded.ok ? "accepted" : decoded.errors).toContainEqual(expect.objectContaining({ path, reason }));
});

test.each<[JsonObject, string, string]>([
  [{ type: "gossip" }, "/type", "unknown_word"],
  [{ type: null }, "/type", "wrong_type"],
  [{ task_id: "T1..1" }, "/task_id", "broken_rule"],
  [{ sender_id: "" }, "/sender_id", "broken_rule"],
  [{ attachments: [{ type: "carrier_pigeon" }] }, "/attachments/0/type", "unknown_word"],
  [{ attachments: [{}] }, "/attachments/0/type", "missing_member"],
  [{ attachments: [{ text: "no type" }] }, "/attachments/0/text", "unknown_member"],
  [{ attachments: [{ type: "file" }] }, "/attachments/0", "missing_member"],
  [
    { attachments: [{ type: "file", path: "/a", url: "https://a.example" }] },
    "/attachments/0/url",
    "conflict",
  ],
  [
    { attachments: [{ type: "tool_call_result", server_id: "S", tool: "t" }] },
    "/attachments/0/result",
    "missing_member",
  ],
  [{ attachments: null }, "/attachments", "wrong_type"],
])("refuses a message with %j", (change, path, reason) => {
  const decoded = decodeValid(CapMessageSchema, { ...NOTICE, ...change });
  expect(decoded.ok ? "accepted" : decoded.errors).toContainEqual(expect.objectContaining({ path, reason }));
});

test("the union decides the type, so an extra member cannot forge it", () => {
  const decoded = decode(CapMessageSchema, { ...NOTICE, extra: 1 });
  if (!decoded.ok || decoded.message.kind.case !== "delegationNotice") throw new Error("not a notice");
  expect(decoded.message.kind.value.extraMembers).toEqual({ extra: 1 });
  const forged = { ...decoded.message.kind.value, extraMembers: { type: "message" } };
  const message = create(CapMessageSchema, { kind: { case: "delegationNotice", value: forged } });
  expect(() => encode(CapMessageSchema, message)).toThrow();
});
