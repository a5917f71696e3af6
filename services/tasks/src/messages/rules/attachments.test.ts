import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { AttachmentSchema, ToolCallResultSchema } from "@depute/contracts/cap/v1/attachment_pb";
import { AgentManifestSchema } from "@depute/contracts/cap/v1/manifest_pb";
import { type CapMessage, CapMessageSchema } from "@depute/contracts/cap/v1/message_pb";
import { DeputeError, reasonName } from "@depute/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkSize, identityOf, isBound, MAX_ATTACHMENT_BYTES, MAX_WORDS } from "./attachments.ts";

function message(content: string, ...objects: JsonValue[]): CapMessage {
  const values = objects.map((object) =>
    create(AttachmentSchema, {
      kind: { case: "pythonObject", value: { object: fromJson(ValueSchema, object) } },
    }),
  );
  const value = { taskId: "T1", senderId: "pm-1", recipientId: "user", content, attachments: { values } };
  return create(CapMessageSchema, { kind: { case: "message", value } });
}

const nested = (levels: number): JsonValue => {
  let value: JsonValue = 1;
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { a: value };
  return value;
};

describe("the size of a message", () => {
  test.each<[string, CapMessage, string]>([
    ["words", message("x".repeat(MAX_WORDS + 1)), "message.length"],
    ["an attachment", message("", "x".repeat(MAX_ATTACHMENT_BYTES)), "attachment.bytes"],
    [
      "all attachments",
      message("", ...Array(3).fill("x".repeat(MAX_ATTACHMENT_BYTES - 100))),
      "message.bytes",
    ],
    ["the nesting depth", message("", nested(31)), "message.depth"],
  ])("is bounded: %s", (_name, large, limit) => {
    expect(() => checkSize(large)).toThrow(
      expect.objectContaining({ metadata: expect.objectContaining({ limit }) }),
    );
  });

  test.each<[string, CapMessage]>([
    ["text, counted in characters", message("😀".repeat(MAX_WORDS))],
    ["an attachment", message("", "x".repeat(MAX_ATTACHMENT_BYTES - 100))],
    ["the nesting depth", message("", nested(30))],
  ])("may reach its limit: %s", (_name, fitting) => {
    expect(() => checkSize(fitting)).not.toThrow();
  });

  test("with members that only protobuf can express is refused", () => {
    const forged = message("");
    if (forged.kind.case === "message") forged.kind.value.extraMembers = { type: "file" };
    try {
      checkSize(forged);
      expect.unreachable();
    } catch (error) {
      expect(error instanceof DeputeError && reasonName(error.reason)).toBe("INVALID_REQUEST");
    }
  });
});

const result = (value: JsonValue, more: object = {}) =>
  create(ToolCallResultSchema, {
    serverId: "DataServer",
    tool: "query_data",
    result: fromJson(ValueSchema, value),
    ...more,
  });

describe("a tool result", () => {
  const manifest = create(AgentManifestSchema, {
    id: "pm-1",
    mcpBindings: [{ serverId: "DataServer", allowedTools: ["query_data"] }],
  });

  test.each([
    ["its own server and tool", {}, true],
    ["another tool", { tool: "drop_data" }, false],
    ["another server", { serverId: "dataserver" }, false],
  ])("is bound to %s: %j", (_name, more, expected) => {
    expect(isBound(manifest, result(1, more))).toBe(expected);
    expect(isBound(undefined, result(1, more))).toBe(false);
  });

  test("has the same identity for any order of its members, and another one with any other member", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue() as fc.Arbitrary<JsonValue>), (object) => {
        const turned = Object.fromEntries(Object.entries(object).reverse());
        expect(identityOf(result(turned))).toBe(identityOf(result(object)));
        expect(identityOf(result({ ...object, more: "than before" }))).not.toBe(identityOf(result(object)));
        expect(identityOf(result(object, { tool: "other" }))).not.toBe(identityOf(result(object)));
      }),
    );
  });
});
