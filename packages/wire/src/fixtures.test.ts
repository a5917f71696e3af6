import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { decode, decodeValid, encode } from "./index.ts";
import { contract } from "./testing/contracts.ts";
import { fixtureFiles, fixtureMessages, fixtureNotes, fixtures } from "./testing/fixtures.ts";

describe("the fixtures", () => {
  test("are all listed, each once", () => {
    expect(fixtures.map(({ file }) => file).sort()).toEqual([...fixtureFiles].sort());
  });

  test.each(fixtures)("$file is in the README's table", ({ file }) => {
    const cells = fixtureNotes.split("\n").map((line) => line.split("|")[1]?.trim());
    expect(cells).toContain(file);
  });
});

describe.each(fixtureMessages())("$name decodes as $message", ({ message, json }) => {
  const schema = contract(message);

  test("is equal after the binary form", () => {
    const decoded = decode(schema, json);
    if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
    const again = fromBinary(schema, toBinary(schema, decoded.message));
    expect(encode(schema, again)).toEqual(json);
    expect(encode(schema, decoded.message)).toEqual(json);
  });

  test("satisfies the rules of its contract", () => {
    const decoded = decodeValid(schema, json);
    expect(decoded.ok ? [] : decoded.errors).toEqual([]);
  });
});
