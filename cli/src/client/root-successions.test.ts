import { create, toJson } from "@bufbuild/protobuf";
import { ListRootKeysResponseSchema } from "@depute/contracts/depute/tokens/v1/root_key_service_pb";
import { decodeBase64Url, toTimestamp } from "@depute/core";
import { portableEngine as engine, formatTime, generateKeypair } from "@depute/dct";
import { followRootSuccessions, signRootSuccession } from "@depute/dct/transparency";
import { expect, test } from "vitest";
import { readSuccessions } from "./root-successions.ts";

const [first, second] = [generateKeypair(engine), generateKeypair(engine)];

// A time on a whole second has no fraction in ProtoJSON, and three digits in the signed text.
test.each([1_700_000_000_000, 1_700_000_000_120])("reads the signed statements of keys, at %d", (time) => {
  const { from, to, ...signatures } = signRootSuccession(engine, first, second, formatTime(time));
  const response = create(ListRootKeysResponseSchema, {
    keys: [
      { principal: from },
      {
        principal: to,
        succession: {
          ...{ earlier: from, successor: to, createTime: toTimestamp(time) },
          earlierSignature: decodeBase64Url(signatures.fromSignature) ?? new Uint8Array(),
          successorSignature: decodeBase64Url(signatures.toSignature) ?? new Uint8Array(),
        },
      },
    ],
  });
  const statements = readSuccessions(JSON.stringify(toJson(ListRootKeysResponseSchema, response)));
  expect(statements).toHaveLength(1);
  expect([...followRootSuccessions(engine, [from], statements)]).toEqual([from, to]);
});

test.each(["", "{}", '"keys"', '{"keys": 1}', "null"])("refuses %j", (text) => {
  expect(() => readSuccessions(text)).toThrow("--succession is not the output");
});

test("proves nothing by a statement without members", () => {
  const statements = readSuccessions('{"keys": [{"succession": {}}]}');
  expect([...followRootSuccessions(engine, [first.principal.id], statements)]).toEqual([first.principal.id]);
});
