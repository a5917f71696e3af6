import { create, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { ArtifactSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { expect, test } from "vitest";
import { inModes } from "./output-modes.ts";

const TEXT = { text: "three", mediaType: "text/plain" };
const DATA = { data: { n: 3 }, mediaType: "application/json" };
const PNG = { raw: "AAH/", mediaType: "image/png" };
const ADDRESS = { url: "https://example.com/a.pdf" };

test.each<{ modes: string[]; parts: JsonValue[]; shown: JsonValue[] }>([
  { modes: [], parts: [TEXT, DATA, PNG], shown: [TEXT, DATA, PNG] },
  { modes: ["*/*"], parts: [TEXT, PNG], shown: [TEXT, PNG] },
  { modes: ["text/plain", "application/json"], parts: [TEXT, DATA, PNG], shown: [TEXT, DATA] },
  { modes: ["text/plain"], parts: [DATA], shown: [{ text: '{"n":3}', mediaType: "text/plain" }] },
  { modes: ["text/*"], parts: [DATA], shown: [{ text: '{"n":3}', mediaType: "text/plain" }] },
  { modes: ["Text/Plain; charset=utf-8"], parts: [TEXT, PNG], shown: [TEXT] },
  { modes: ["application/json"], parts: [TEXT], shown: [{ data: "three", mediaType: "application/json" }] },
  { modes: ["image/*"], parts: [TEXT, PNG], shown: [PNG] },
  { modes: ["image/png"], parts: [TEXT], shown: [TEXT] },
  { modes: ["text/plain"], parts: [PNG, ADDRESS], shown: [PNG, ADDRESS] },
  { modes: ["application/octet-stream"], parts: [PNG, ADDRESS], shown: [ADDRESS] },
  { modes: ["nonsense"], parts: [TEXT], shown: [TEXT] },
])("a client of $modes gets of $parts: $shown", ({ modes, parts, shown }) => {
  const artifact = fromJson(ArtifactSchema, { artifactId: "a", parts });
  expect(toJson(ArtifactSchema, inModes(artifact, modes))).toEqual({ artifactId: "a", parts: shown });
});

test("an artifact without parts stays empty", () => {
  expect(inModes(create(ArtifactSchema, { artifactId: "a" }), ["text/plain"]).parts).toEqual([]);
});
