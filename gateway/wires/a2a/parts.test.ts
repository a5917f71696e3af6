import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { MessageSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { describe, expect, test } from "vitest";
import { descriptionOf, inputOf } from "./parts.ts";

const message = (...parts: JsonValue[]) =>
  fromJson(MessageSchema, { messageId: "1", role: "ROLE_USER", parts });

describe("the input of a message", () => {
  test.each([
    ["one text", [{ text: "a" }], "a"],
    ["texts", [{ text: "a" }, { text: "b" }], "a\nb"],
    ["an object", [{ data: { a: 1 } }], { a: 1 }],
    ["null", [{ data: null }], null],
    ["two values", [{ data: 1 }, { data: 2 }], { parts: [{ data: 1 }, { data: 2 }] }],
    [
      "a file",
      [{ raw: "AAE=", filename: "a.bin", mediaType: "application/octet-stream" }],
      { parts: [{ raw: "AAE=", filename: "a.bin", mediaType: "application/octet-stream" }] },
    ],
    [
      "a text and an address",
      [{ text: "a" }, { url: "https://example.com" }],
      { parts: [{ text: "a" }, { url: "https://example.com" }] },
    ],
  ] as const)("%s", (_, parts, input) => {
    expect(inputOf(message(...(parts as readonly JsonValue[])))).toEqual(input);
  });
});

test("the description is the texts, cut to the length that a task allows", () => {
  expect(descriptionOf(message({ text: "a" }, { data: 1 }, { text: "b" }))).toBe("a\nb");
  expect(Array.from(descriptionOf(message({ text: "😀".repeat(20_000) })))).toHaveLength(16_384);
  expect(descriptionOf(create(MessageSchema))).toBe("");
});
