import { createHash } from "node:crypto";
import type { JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bytes, capability, json } from "../testing/capability.ts";
import { readJsonText, writeJsonText } from "./json-text.ts";
import { toRef, toSummary, withHash } from "./levels.ts";
import { readPublication } from "./publication.ts";
import { countChecks, schemasToCheck } from "./schema-checks.ts";

const sha256 = (data: Uint8Array) => createHash("sha256").update(data).digest("hex");
const read = (...capabilities: ReturnType<typeof capability>[]) => readPublication(capabilities, sha256);

describe("readJsonText", () => {
  it("round-trips", () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }) as fc.Arbitrary<JsonValue>, (value) => {
        fc.pre(!JSON.stringify(value).includes("__proto__") && JSON.stringify(value).isWellFormed());
        const text = writeJsonText(value);
        expect(writeJsonText((readJsonText(text) as { value: JsonValue }).value)).toEqual(text);
      }),
    );
  });

  it.each<[string, Uint8Array, RegExp]>([
    ["nothing", bytes(""), /not JSON/],
    ["two values", bytes("1 2"), /not JSON/],
    ["a comment", bytes("// {}"), /not JSON/],
    ["a byte order mark", bytes("\ufeff{}"), /not JSON/],
    ["bytes that are not UTF-8", Uint8Array.of(0x22, 0xc3, 0x22), /not UTF-8/],
    ["half a character", bytes('"\\ud800"'), /no canonical form/],
    ["a number out of range", bytes("-1e999"), /no canonical form/],
    ["a hidden member", bytes('[{"\\u005f_proto__":1}]'), /__proto__/],
  ])("refuses %s", (_, text, problem) => {
    expect(readJsonText(text).problem).toMatch(problem);
  });
});

describe("readPublication", () => {
  it("stores the parsed text without white space", () => {
    const [published] = read({ ...capability("a"), inputSchema: bytes('{ "type": "object" }') });
    expect(published?.message.inputSchema).toEqual(json({ type: "object" }));
    expect(published?.input).toEqual({ type: "object" });
  });

  it("refuses a schema with two members of one name", () => {
    const sent = { ...capability("a"), inputSchema: bytes('{ "type": "string", "type": "object" }') };
    expect(() => read(sent)).toThrow('the member "type" occurs twice in one object');
  });

  it("gives equal digests to capabilities with equal schemas", () => {
    const [one] = read(capability("a", { desc: "one", cat: "x", examples: [{ in: {}, out: {} }] }));
    const [two] = read({ ...capability("b", { desc: "two" }), agentHint: "hint", h: "00000000" });
    expect(one?.digest).toBe(two?.digest);
    expect(read(capability("a", { input: { type: "string" } }))[0]?.digest).not.toBe(one?.digest);
  });

  it.each(["a/b", "a b", "a\u0000", "a*", "*", "-", ".", "..", "a%2e", "a\\b"])("refuses the id %j", (id) => {
    expect(() => read(capability(id))).toThrow("capabilities[0].id");
  });

  it.each(["a", "a-b", "a.b", "a:b", "--", "..."])("accepts the id %j", (id) => {
    expect(read(capability(id))).toHaveLength(1);
  });
});

describe("schemasToCheck", () => {
  const one = () => capability("one", { examples: [{ in: { a: 1 }, out: { b: 2 } }] });
  const published = (...capabilities: ReturnType<typeof capability>[]) =>
    new Map(read(...capabilities).map(({ message }) => [message.id, message]));

  it("reports the request path of each schema and example", () => {
    const schemas = schemasToCheck(read(capability("zero"), one()), new Map());
    expect(schemas.map(({ field, examples }) => [field, examples])).toEqual([
      ["capabilities[0].input_schema", []],
      ["capabilities[0].output_schema", []],
      ["capabilities[1].input_schema", [{ field: "capabilities[1].examples[0].input", value: { a: 1 } }]],
      ["capabilities[1].output_schema", [{ field: "capabilities[1].examples[0].output", value: { b: 2 } }]],
    ]);
    expect(countChecks(schemas)).toBe(4);
  });

  it.each<[string, ReturnType<typeof capability>, number]>([
    ["the same again", one(), 0],
    ["another description", { ...one(), desc: "new" }, 0],
    ["another id", { ...one(), id: "two" }, 2],
    ["another schema", { ...one(), outputSchema: json({}) }, 2],
    ["another example", capability("one", { examples: [{ in: { a: 1 }, out: { b: 3 } }] }), 2],
    [
      "one more example",
      capability("one", { examples: [...Array(2)].map(() => ({ in: { a: 1 }, out: { b: 2 } })) }),
      2,
    ],
    ["no example", capability("one"), 2],
  ])("of %s", (_, next, count) => {
    expect(schemasToCheck(read(next), published(one()))).toHaveLength(count);
  });
});

describe("levels", () => {
  it("contain less at each lower level", () => {
    const [published] = read({ ...capability("a", { desc: "d", cat: "c" }), agentHint: "hint" });
    if (published === undefined) throw new Error("nothing was read");
    const full = withHash(published.message, published.digest, 16);
    expect(full.h).toBe(published.digest.slice(0, 16));
    expect(published.message.h).toBe("");
    const head = { id: "a", cat: "c", h: full.h };
    const summary = { ...head, desc: "d", cost: full.cost, agentHint: "hint" };
    expect({ ...toSummary(full) }).toEqual({ $typeName: "nekte.v1.CapabilitySummary", ...summary });
    expect({ ...toRef(full) }).toEqual({ $typeName: "nekte.v1.CapabilityRef", ...head });
  });
});
