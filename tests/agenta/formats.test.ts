import { create } from "@bufbuild/protobuf";
import { ArtifactSchema } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { VerificationResultSchema } from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import { brokenRules, isDateTimeFormat, isUriFormat } from "@depute/core";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import fc from "fast-check";
import { expect, test } from "vitest";

const ajv = new Ajv2020();
formats.default(ajv);
const isUri = ajv.compile({ type: "string", format: "uri" });
const isDateTime = ajv.compile({ type: "string", format: "date-time" });

const takesUri = (uri: string) =>
  brokenRules(ArtifactSchema, create(ArtifactSchema, { artifactType: 1, uri })).length === 0;
const takesTime = (verifiedAt: string) =>
  brokenRules(VerificationResultSchema, create(VerificationResultSchema, { verifiedAt })).every(
    ({ field }) =>
      !JSON.stringify(field.map((part) => ("name" in part ? part.name : ""))).includes("verified_at"),
  );

test("the schema accepts every URI that the contract and the platform accept", () => {
  const pieces = fc.constantFrom(
    ...["http", "urn", "a", "A1+.-", ":", "//", "/", "?", "#", "[", "]", "@", "%41", "%", "::1", "127.0.0.1"],
    ...[
      "host",
      "..",
      ",",
      ";",
      "x=1",
      "é",
      " ",
      "'",
      "(",
      "!",
      "[::1]",
      "[v1.a]",
      "[fe80::1%25eth0]",
      "|",
      "8080",
    ],
  );
  const scheme = fc.constantFrom("http://", "a:", "urn:", "data:", "http:", "");
  const text = fc
    .tuple(scheme, fc.array(pieces, { maxLength: 7 }))
    .map(([head, tail]) => head + tail.join(""));
  let takenCount = 0;
  fc.assert(
    fc.property(text, (uri) => {
      if (!takesUri(uri) || !isUriFormat(uri)) return;
      takenCount++;
      expect([uri, isUri(uri)]).toEqual([uri, true]);
    }),
    { numRuns: 5000 },
  );
  expect(takenCount).toBeGreaterThan(100);
});

test("the schema accepts every time that the contract and the platform accept", () => {
  const two = (from: number, to: number) =>
    fc.integer({ min: from, max: to }).map((number) => String(number).padStart(2, "0"));
  const parts = [two(1, 13), two(1, 32), two(0, 24), two(57, 60), two(58, 60)] as const;
  const zone = fc.constantFrom("Z", "z", "+00:00", "-05:30", "+23:59", "+24:00", "");
  const text = fc
    .tuple(...parts, fc.constantFrom("", ".5", ".123456789"), zone)
    .map(([month, day, hour, minute, second, rest, offset]) => {
      return `2024-${month}-${day}T${hour}:${minute}:${second}${rest}${offset}`;
    });
  let takenCount = 0;
  fc.assert(
    fc.property(text, (time) => {
      if (!takesTime(time) || !isDateTimeFormat(time)) return;
      takenCount++;
      expect([time, isDateTime(time)]).toEqual([time, true]);
    }),
    { numRuns: 5000 },
  );
  expect(takenCount).toBeGreaterThan(100);
  expect([isDateTimeFormat("2024-06-30T23:59:60Z"), isDateTimeFormat("2024-06-30T12:00:60Z")]).toEqual([
    true,
    false,
  ]);
});
