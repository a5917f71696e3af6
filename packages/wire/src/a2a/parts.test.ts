import { create, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { ArtifactSchema, PartSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { describe, expect, test } from "vitest";
import { MAX_ARTIFACTS, MAX_PARTS, partsIn, resultArtifacts, valueOfParts } from "./parts.ts";

const artifactsOf = (output: JsonValue) =>
  resultArtifacts(fromJson(ValueSchema, output)).map((artifact) => toJson(ArtifactSchema, artifact));
const result = (...parts: JsonValue[]) => [{ artifactId: "result", name: "result", parts }];
const data = (value: JsonValue) => result({ data: value, mediaType: "application/json" });
const text = { text: "x" };

describe("the artifacts of a result", () => {
  test.each<[string, JsonValue, JsonValue]>([
    ["a string", "x", result({ text: "x", mediaType: "text/plain" })],
    ["an object", { a: [1] }, data({ a: [1] })],
    ["null", null, data(null)],
    [
      "parts in the form of A2A",
      { parts: [text, { url: "https://example.com/a.png", filename: "a.png" }] },
      result(text, { url: "https://example.com/a.png", filename: "a.png" }),
    ],
    [
      "artifacts in the form of A2A",
      {
        artifacts: [
          { artifactId: "a", name: "A", parts: [text] },
          { artifactId: "b", parts: [{ raw: "AAE=" }] },
        ],
      },
      [
        { artifactId: "a", name: "A", parts: [text] },
        { artifactId: "b", parts: [{ raw: "AAE=" }] },
      ],
    ],
    ["no parts", { parts: [] }, data({ parts: [] })],
    ["parts without content", { parts: [{ filename: "a" }] }, data({ parts: [{ filename: "a" }] })],
    ["parts of another form", { parts: ["x"] }, data({ parts: ["x"] })],
    ["parts and more", { parts: [text], n: 1 }, data({ parts: [text], n: 1 })],
    ["artifacts without an id", { artifacts: [{ parts: [text] }] }, data({ artifacts: [{ parts: [text] }] })],
    [
      "artifacts without parts",
      { artifacts: [{ artifactId: "a" }] },
      data({ artifacts: [{ artifactId: "a" }] }),
    ],
  ])("%s", (_, output, artifacts) => {
    expect(artifactsOf(output)).toEqual(artifacts);
  });

  test("of one id twice are data", () => {
    const artifact = { artifactId: "a", parts: [text] };
    expect(artifactsOf({ artifacts: [artifact, artifact] })).toEqual(
      data({ artifacts: [artifact, artifact] }),
    );
  });

  test.each([
    ["artifacts", MAX_ARTIFACTS, (n: number) => ({ artifactId: `a${n}`, parts: [text] })],
    ["parts", MAX_PARTS, () => text],
  ])("up to the maximum of %s are read", (member, max, element) => {
    const list = Array.from({ length: max + 1 }, (_, n) => element(n));
    const [first] = artifactsOf({ [member]: list.slice(0, max) }) as { parts: JsonValue[] }[];
    expect(first?.parts[0]).toEqual(text);
    expect(artifactsOf({ [member]: list })).toEqual(data({ [member]: list }));
  });
});

describe("the value of parts", () => {
  test.each<[string, JsonValue[], JsonValue]>([
    ["no parts", [], null],
    ["text", [text, { text: "y" }], "x\ny"],
    ["data", [{ data: { n: 1 } }], { n: 1 }],
    ["both", [text, { data: 1 }], { parts: [text, { data: 1 }] }],
    ["a file", [{ raw: "AAE=" }], { parts: [{ raw: "AAE=" }] }],
  ])("%s", (_, parts, value) => {
    expect(valueOfParts(parts.map((part) => fromJson(PartSchema, part)))).toEqual(value);
  });

  test("is read back", () => {
    const parts = [create(PartSchema, { content: { case: "text", value: "x" } })];
    const file = create(PartSchema, { content: { case: "url", value: "https://example.com" } });
    expect(partsIn(valueOfParts([...parts, file]))).toEqual([...parts, file]);
    expect(partsIn("x")).toBeUndefined();
  });
});
