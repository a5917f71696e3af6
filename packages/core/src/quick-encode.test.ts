import { create, fromJson, type JsonValue, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { AgentManifestSchema } from "@depute/contracts/cap/v1/manifest_pb";
import { TaskOutputSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import { VerifyTokenResponseSchema } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { HolderProofSchema } from "@depute/contracts/depute/tokens/v1/verification_pb";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeQuickly } from "./quick-encode.ts";
import { messagesOf, ownContracts } from "./testing/index.ts";

const own = await ownContracts();

describe("what is written quickly is what toBinary writes", () => {
  test.each(own.map((desc) => [desc.typeName, desc] as const))("%s", (_, desc) => {
    fc.assert(
      fc.property(messagesOf(desc), (message) => {
        const quickly = encodeQuickly(desc, message);
        if (quickly !== undefined) expect(Buffer.from(toBinary(desc, message)).equals(quickly)).toBe(true);
      }),
      { numRuns: 15 },
    );
  });
});

describe("free JSON", () => {
  test("is written quickly, whatever it is", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (json) => {
        const full = fromJson(ValueSchema, json as JsonValue);
        const output = create(TaskOutputSchema, { full });
        expect(encodeQuickly(TaskOutputSchema, output)).toEqual(
          Buffer.from(toBinary(TaskOutputSchema, output)),
        );
      }),
    );
  });

  test.each([0, -0, 0.1, -1e308, Number.NaN, Number.POSITIVE_INFINITY])(
    "of the number %s is, too",
    (value) => {
      const number = create(ValueSchema, { kind: { case: "numberValue", value } });
      expect(encodeQuickly(ValueSchema, number)).toEqual(Buffer.from(toBinary(ValueSchema, number)));
    },
  );

  test("that an object is held as is left to toBinary, also where it looks like a message", () => {
    const extraMembers = { $typeName: "google.protobuf.Struct", fields: {} };
    const message = create(AgentManifestSchema, { extraMembers });
    expect(encodeQuickly(AgentManifestSchema, message)).toBeUndefined();
  });
});

describe("an answer", () => {
  type Answer = Exclude<MessageInitShape<typeof VerifyTokenResponseSchema>, { $typeName: string }>;
  const blocks = [1, 42, 43, 48, 49, 127, 128, 5000].map((length) => ({ revocationId: "r".repeat(length) }));

  test.each<[string, Answer]>([
    ["that is empty", {}],
    ["with texts of every length", { blocks: blocks as never }],
    ["that is long", { blocks: Array.from({ length: 20 }, () => blocks[6]) as never }],
    ["with a large number", { revocationSequence: 2n ** 53n - 1n }],
  ])("%s is written quickly", (_, init) => {
    const message = create(VerifyTokenResponseSchema, init);
    const bytes = encodeQuickly(VerifyTokenResponseSchema, message);
    expect(bytes).toEqual(Buffer.from(toBinary(VerifyTokenResponseSchema, message)));
  });

  test.each<[string, Answer]>([
    ["that is too long", { principal: "p".repeat(40_000) }],
    ["whose text's length in UTF-8 has more digits", { principal: "\u00e9".repeat(127) }],
    ["with a number beyond 2^53", { revocationSequence: 2n ** 53n }],
    ["with a number below zero", { revocationSequence: -1n }],
    [
      "with fields that are not known",
      { $unknown: [{ no: 99, wireType: 0, data: new Uint8Array([1]) }] } as never,
    ],
    ["with a value of another type", { principal: 5 } as never],
    ["without a list", { blocks: undefined } as never],
  ])("%s is left to toBinary", (_, init) => {
    const message = Object.assign(create(VerifyTokenResponseSchema), init);
    expect(encodeQuickly(VerifyTokenResponseSchema, message)).toBeUndefined();
    // One that is usual has it tried again.
    expect(encodeQuickly(VerifyTokenResponseSchema, create(VerifyTokenResponseSchema))).toBeDefined();
  });

  test("of a type that is unusual again and again is not tried any more", () => {
    const odd = create(HolderProofSchema, { jwt: "j".repeat(40_000) });
    for (let i = 0; i < 16; i++) expect(encodeQuickly(HolderProofSchema, odd)).toBeUndefined();
    expect(encodeQuickly(HolderProofSchema, create(HolderProofSchema))).toBeUndefined();
  });
});
