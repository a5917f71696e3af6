import type { JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type PeerEvent, readPeerEvent } from "./peer-event.ts";
import { PeerFault } from "./refusal.ts";

const read = (name: string, data: JsonValue) => readPeerEvent(name, data, "t1");
const complete = (result: object): PeerEvent => ({
  kind: "complete",
  result: { tokensUsed: 0, ...result } as never,
});

describe("readPeerEvent", () => {
  test.each<[string, JsonValue, PeerEvent]>([
    [
      "progress",
      { processed: 50, total: 500, message: "Processing batch 1" },
      { kind: "progress", processed: 50, total: 500, message: "Processing batch 1" },
    ],
    [
      "progress",
      { processed: -1, total: 1e300 },
      { kind: "progress", processed: 0, total: 2 ** 31 - 1, message: "" },
    ],
    ["progress", { processed: "5" }, { kind: "progress", processed: 0, total: 0, message: "" }],
    [
      "partial",
      { out: { preliminary_score: 0.72 }, resolved_level: "compact" },
      { kind: "partial", output: { preliminary_score: 0.72 }, level: "compact" },
    ],
    ["partial", { out: 1, resolved_level: "enormous" }, { kind: "partial", output: 1, level: "compact" }],
    ["partial", {}, { kind: "partial", output: null, level: "compact" }],
    [
      "complete",
      {
        task_id: "t1",
        status: "completed",
        out: { minimal: "m", compact: { c: 1 } },
        meta: { tokens_used: 7 },
      },
      complete({ output: { c: 1 }, minimal: "m", tokensUsed: 7 }),
    ],
    ["complete", { out: { minimal: "m" } }, complete({ output: "m", minimal: "m" })],
    ["complete", { out: { compact: 1, full: 2 } }, complete({ output: 2, compact: 1 })],
    // The event as gRPC sends it: absent values are null.
    ["complete", { task_id: "", out: { minimal: "", compact: 1, full: null } }, complete({ output: 1 })],
    ["complete", { out: { minimal: "", compact: null, full: null } }, complete({ output: "" })],
    ["complete", { task_id: "t1", out: {}, proof: { hash: "x" } }, complete({ output: null })],
    ["error", { code: -32007, message: "no" }, { kind: "failed", code: -32007, message: "no" }],
    ["error", { code: "x" }, { kind: "failed", code: -32007, message: "" }],
    ["cancelled", { task_id: "t1", reason: "enough" }, { kind: "cancelled", reason: "enough" }],
    ["cancelled", { reason: null }, { kind: "cancelled", reason: "" }],
    ["suspended", { checkpoint_available: true }, { kind: "suspended", checkpointAvailable: true }],
    ["suspended", {}, { kind: "suspended", checkpointAvailable: false }],
    ["resumed", { task_id: "t1", from_checkpoint: true }, { kind: "moved" }],
    ["status_change", { from: "accepted", to: "running" }, { kind: "moved" }],
    ["status_change", { from: "running", to: "completed" }, { kind: "moved" }],
    ["status_change", { to: "failed", reason: "no" }, { kind: "failed", code: -32007, message: "no" }],
    ["status_change", { to: "cancelled" }, { kind: "cancelled", reason: "" }],
    ["status_change", { to: "suspended" }, { kind: "suspended", checkpointAvailable: false }],
    ["of a later version", { task_id: "t1", anything: 1 }, { kind: "moved" }],
  ])("%s %j", (name, data, event) => {
    expect(read(name, data)).toEqual(event);
  });

  test.each<[string, JsonValue]>([
    ["complete", { task_id: "t2", out: { full: 1 } }],
    ["progress", { task_id: "t2", processed: 1 }],
    ["error", { task_id: 1, code: 1 }],
    ["progress", []],
    ["progress", null],
    ["complete", { task_id: "t1" }],
    ["complete", { out: "text" }],
  ])("refuses %s %j", (name, data) => {
    expect(() => read(name, data)).toThrow(PeerFault);
  });

  test("cuts texts at their limits", () => {
    const long = "x".repeat(5000);
    expect(read("error", { code: 1, message: long })).toMatchObject({ message: long.slice(0, 2000) });
    expect(read("progress", { message: long })).toMatchObject({ message: long.slice(0, 1000) });
    expect(read("complete", { out: { minimal: long, full: 1 } })).toMatchObject({
      result: { minimal: long.slice(0, 2000) },
    });
  });

  test("reads or refuses any event", () => {
    const names = fc.constantFrom(
      "progress",
      "partial",
      "complete",
      "error",
      "cancelled",
      "status_change",
      "x",
    );
    const data = fc.oneof(
      fc.jsonValue(),
      fc.dictionary(fc.constantFrom("out", "task_id", "to", "meta"), fc.jsonValue()),
    );
    fc.assert(
      fc.property(names, data, (name, json) => {
        try {
          expect(read(name, json as JsonValue).kind).toBeTypeOf("string");
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(PeerFault);
        }
      }),
    );
  });
});
