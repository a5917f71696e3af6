import { PrincipalSchema } from "@depute/contracts/delegateos/v0/principal_pb";
import { ErrorReason } from "@depute/core";
import { expect, test } from "vitest";
import { decode, decodeValid, parseJson, refusalOf, type WireError } from "./index.ts";

type Outcome = { ok: true } | { ok: false; error: WireError; errors?: readonly [WireError, ...WireError[]] };

function refusal(outcome: Outcome) {
  if (outcome.ok) throw new Error("it was accepted");
  return refusalOf(...(outcome.errors ?? ([outcome.error] as const)));
}

test.each<[string, Outcome, ErrorReason, object]>([
  ["a text that is not JSON", parseJson("{"), ErrorReason.MALFORMED_JSON, { metadata: { path: "" } }],
  [
    "a text that is too large",
    parseJson("[]", { maxBytes: 1 }),
    ErrorReason.LIMIT_EXCEEDED,
    { metadata: { limit: "json_bytes", max: "1" } },
  ],
  [
    "a document that is too deep",
    decode(PrincipalSchema, { id: "p", metadata: {} }, { maxDepth: 1 }),
    ErrorReason.LIMIT_EXCEEDED,
    { metadata: { limit: "json_depth", max: "1" } },
  ],
  [
    "a member of another kind",
    decode(PrincipalSchema, { id: 1 }),
    ErrorReason.INVALID_REQUEST,
    { violations: [{ field: "/id", reason: "wrong_type" }] },
  ],
  [
    "two broken rules",
    decodeValid(PrincipalSchema, { id: "p", name: "n".repeat(257) }),
    ErrorReason.INVALID_REQUEST,
    {
      violations: [
        { field: "/id", reason: "string.pattern" },
        { field: "/name", reason: "string.max_len" },
      ],
    },
  ],
])("%s", (_name, outcome, reason, more) => {
  expect(refusal(outcome)).toMatchObject({ reason, ...more });
});
