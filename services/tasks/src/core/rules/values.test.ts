import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "@depute/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkValue, MAX_VALUE_DEPTH } from "./values.ts";

const bytesOf = (json: unknown) => new TextEncoder().encode(JSON.stringify(json)).length;
const toValue = (json: JsonValue) => fromJson(ValueSchema, json);
const refused = (reason: ErrorReason) => expect.objectContaining({ reason });

function nested(depth: number): JsonValue {
  let value: JsonValue = 1;
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

describe("a value", () => {
  test("is measured as its JSON, to the byte", () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false, maxDepth: 5 }), (json) => {
        // Both bytesOf and checkValue count -0 as 0.
        const bytes = bytesOf(json);
        checkValue(toValue(json as JsonValue), "input", bytes);
        expect(() => checkValue(toValue(json as JsonValue), "input", bytes - 1)).toThrow(
          refused(ErrorReason.LIMIT_EXCEEDED),
        );
      }),
    );
  });

  test("may be nested up to the limit", () => {
    checkValue(toValue(nested(MAX_VALUE_DEPTH)), "input", 1000);
    expect(() => checkValue(toValue(nested(MAX_VALUE_DEPTH + 1)), "input", 1000)).toThrow(
      expect.objectContaining({ metadata: { limit: "input.depth", max: String(MAX_VALUE_DEPTH) } }),
    );
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY])("%s is not JSON", (number) => {
    const value = create(ValueSchema, { kind: { case: "numberValue", value: number } });
    expect(() => checkValue(value, "input", 1000)).toThrow(refused(ErrorReason.INVALID_REQUEST));
  });

  test("without a kind is not JSON, at any depth", () => {
    const value = create(ValueSchema, {
      kind: { case: "listValue", value: { values: [create(ValueSchema)] } },
    });
    expect(() => checkValue(value, "input", 1000)).toThrow(refused(ErrorReason.INVALID_REQUEST));
  });
});
