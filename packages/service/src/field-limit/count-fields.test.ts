import { create, fromJson, type JsonValue, toBinary, toJsonString } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { CheckOutputRequestSchema } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import fc from "fast-check";
import { expect, test } from "vitest";
import { hasMoreFields, hasMoreJsonValues } from "./count-fields.ts";

/** Returns the number of fields in the google.protobuf.Value of a JSON value. */
function fieldsOf(value: JsonValue): number {
  // An item of a list counts as one field. A member of an object counts as three: an entry, its key and its value.
  if (Array.isArray(value)) return 1 + sum(value.map((item) => 1 + fieldsOf(item)));
  if (typeof value === "object" && value !== null) {
    return 1 + sum(Object.values(value).map((member) => 3 + fieldsOf(member)));
  }
  return 1;
}

const sum = (counts: readonly number[]) => counts.reduce((all, each) => all + each, 0);

test("the count of a message includes the fields of nested messages", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5, noUnicodeString: false }), (output) => {
      const request = { contractId: "ct", output: fromJson(ValueSchema, output as JsonValue) };
      const bytes = toBinary(CheckOutputRequestSchema, create(CheckOutputRequestSchema, request));
      const count = 2 + fieldsOf(output as JsonValue);
      expect(hasMoreFields(CheckOutputRequestSchema, bytes, count)).toBe(false);
      expect(hasMoreFields(CheckOutputRequestSchema, bytes, count - 1)).toBe(true);
    }),
  );
});

test("any bytes are counted without an error", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      expect(hasMoreFields(CheckOutputRequestSchema, bytes, bytes.length)).toBeTypeOf("boolean");
    }),
  );
});

/** 1,000 empty values in the list of the request's field `output`. */
const items = Buffer.alloc(2000, Buffer.of(0x0a, 0));
const varint = (length: number) => Buffer.of((length & 0x7f) | 0x80, length >>> 7);

test.each<[description: string, bytes: Uint8Array]>([
  [
    "in a valid message",
    Buffer.concat([Buffer.of(0x12), varint(2003), Buffer.of(0x32), varint(2000), items]),
  ],
  ["in a message with too short a length", Buffer.concat([Buffer.of(0x12, 3, 0x32), varint(2000), items])],
  [
    "in a message with too long a length",
    Buffer.concat([Buffer.of(0x12), varint(9000), Buffer.of(0x32), varint(8000), items]),
  ],
  ["of unknown fields", Buffer.alloc(2000, Buffer.of(0x78, 0))],
])("a thousand items %s exceed the limit", (_, bytes) => {
  expect(hasMoreFields(CheckOutputRequestSchema, bytes, 900)).toBe(true);
});

test("nesting beyond the limit counts as too many fields", () => {
  let bytes = Buffer.of(0x0a, 0);
  for (let i = 0; i < 111; i++) {
    const length = i % 2 === 0 ? Buffer.of(0x32) : Buffer.of(0x0a);
    bytes = Buffer.concat([
      length,
      bytes.length < 128 ? Buffer.of(bytes.length) : varint(bytes.length),
      bytes,
    ]);
  }
  expect(hasMoreFields(ValueSchema, bytes, 100_000)).toBe(true);
});

test("in JSON, values and members count, and the content of strings does not", () => {
  const count = (text: string, max: number) => hasMoreJsonValues(Buffer.from(text), max);
  expect(count('{"a":[1,2]}', 8)).toBe(false);
  expect(count('{"a":[1,2]}', 7)).toBe(true);
  expect(count('{"a":",,,,[[[[\\",,,,::::"}', 4)).toBe(false);
  const long = toJsonString(
    ValueSchema,
    fromJson(
      ValueSchema,
      Array.from({ length: 1000 }, () => ({})),
    ),
  );
  expect(count(long, 3000)).toBe(true);
});
