import { describe, expect, it } from "vitest";
import { nativeEngine } from "../engine/native.ts";
import { AuditChain } from "./audit-chain.ts";
import { type AuditSeal, FIRST_AUDIT_HEAD, nextAuditHead } from "./audit-seal.ts";

const { sha256 } = nativeEngine;
const utf8 = new TextEncoder();
const line = (sequence: number) => utf8.encode(`{"sequence":"${sequence}"}`);

/** Returns seals for days whose last records have these sequences. The records are unchanged. */
function sealed(...ends: readonly number[]): AuditSeal[] {
  let head: Uint8Array = FIRST_AUDIT_HEAD;
  let sequence = 0;
  return ends.map((lastSequence, index) => {
    const [previousHead, firstSequence] = [head, sequence + 1];
    for (; sequence < lastSequence; sequence++) head = nextAuditHead(sha256, head, line(sequence + 1));
    return { day: `2026-01-0${index + 1}`, firstSequence, lastSequence, previousHead, head };
  });
}

function check(seals: readonly AuditSeal[], records: readonly (readonly [number, Uint8Array])[]) {
  const chain = new AuditChain(sha256, seals);
  for (const [sequence, bytes] of records) chain.add(sequence, bytes);
  const { days, unsealed } = chain.end();
  return { days: days.map((day) => (day.kind === "altered" ? day.fault : day.kind)), unsealed };
}
const records = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, n) => [first + n, line(first + n)] as const);

describe("an exported audit log", () => {
  const seals = sealed(3, 5, 9);
  it("is valid with every record of each day; later records have no seal yet", () => {
    expect(check(seals, records(1, 11))).toEqual({ days: ["valid", "valid", "valid"], unsealed: 2 });
  });
  it("is incomplete for days without their first records", () => {
    expect(check(seals, records(3, 9)).days).toEqual(["incomplete", "valid", "valid"]);
    expect(check(seals, []).days).toEqual(["incomplete", "incomplete", "incomplete"]);
  });
  it("reveals a changed record", () => {
    const changed = records(1, 9).map(([n, bytes]) => [n, n === 4 ? utf8.encode("{}") : bytes] as const);
    expect(check(seals, changed).days).toEqual(["valid", "a record was changed", "valid"]);
  });
  it("reveals a missing record, within a day and at its end", () => {
    const without = (gap: number) => records(1, 9).filter(([n]) => n !== gap);
    expect(check(seals, without(2)).days).toEqual(["record 2 is missing", "valid", "valid"]);
    expect(check(seals, without(5)).days).toEqual(["valid", "record 5 is missing", "valid"]);
  });
  it("reveals a seal that does not follow the previous one", () => {
    const [first, , last] = seals as [AuditSeal, AuditSeal, AuditSeal];
    expect(check([first, last], records(1, 9)).days).toEqual([
      "valid",
      "its seal does not follow the seal of 2026-01-01",
    ]);
  });
});
