import { toJson } from "@bufbuild/protobuf";
import { AuditRecordSchema } from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { canonicalJson } from "@depute/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { auditLine, lineOf, toRecord } from "./audit-message.ts";
import { type AuditEntry, DECISION_KINDS } from "./audit-record.ts";

const text = fc.oneof(fc.constantFrom("", "a", "\ud800", 'q"\\\n', "caf\u00e9 \u{1f600}\u2028"), fc.string());
const credential = fc.constantFrom(
  ...["", "none", "secret", "login_token", "certificate", "holder_proof", "delegation_token"],
  ...["message", "service", "unknown"],
);
const callTexts = {
  ...{ organization: text, address: text, onBehalfOf: text, rpc: text, wire: text, resource: text },
  ...{ requestId: text, traceId: text, credential },
};
const entry: fc.Arbitrary<AuditEntry> = fc.record({
  id: fc.integer({ min: 1 }),
  time: fc.oneof(
    fc.integer({ min: 0, max: 4_102_444_800_000 }),
    fc.integer({ min: 0, max: 4_102_444_800 }).map((seconds) => seconds * 1000),
  ),
  kind: fc.constantFrom(...DECISION_KINDS),
  caller: text,
  principal: text,
  decision: fc.constantFrom("allowed", "denied"),
  reason: text,
  blocks: fc.array(fc.string({ maxLength: 43, unit: "grapheme-ascii" }), { maxLength: 3 }),
  source: text,
  call: fc.record(callTexts, { requiredKeys: [] }),
});

test("property: the line of an entry is the canonical JSON of its record's ProtoJSON", () => {
  fc.assert(
    fc.property(entry, (one) => {
      const line = canonicalJson(toJson(AuditRecordSchema, toRecord(one)));
      expect(lineOf(one)).toBe(line);
      expect(new TextDecoder().decode(auditLine(one))).toBe(line);
    }),
    { numRuns: 1000 },
  );
});
