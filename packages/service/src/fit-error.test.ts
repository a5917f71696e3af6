import { toBinary } from "@bufbuild/protobuf";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { StatusSchema } from "@depute/contracts/google/rpc/status_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toStatus, toWire } from "./errors-on-wire.ts";
import { fitError } from "./fit-error.ts";

const violation = (index: number) => ({
  field: `requests[${index}].draft.agent_id`,
  description: "value length must be at least 1 characters",
  reason: "string.min_len",
});
const violations = (count: number) => Array.from({ length: count }, (_, index) => violation(index));
const trailerBytes = (error: DeputeError) =>
  [...setTrailerStatus(new Headers(), toWire(error))].reduce(
    (bytes, [name, value]) => bytes + name.length + value.length + 4,
    0,
  );

describe("a refusal on the wire", () => {
  it.each([
    [0, 0, undefined],
    [20, 20, undefined],
    [21, 20, "1"],
    [5000, 20, "4980"],
  ])("of %i violations names %i, and states the number of the others", (count, includedCount, more) => {
    const error = new DeputeError(ErrorReason.INVALID_REQUEST, "wrong", { violations: violations(count) });
    const { violations: includedViolations, metadata } = fitError(error);
    expect([includedViolations.length, metadata.more_violations]).toEqual([includedCount, more]);
    expect(includedViolations).toEqual(violations(includedCount));
    expect(error.message).toBe(more === undefined ? "wrong" : `wrong (and ${more} more violations)`);
  });

  it("includes the violations that it cuts in that number", () => {
    const long = violations(30).map((one) => ({ ...one, description: "é".repeat(500) }));
    const error = new DeputeError(ErrorReason.INVALID_REQUEST, "wrong", { violations: long });
    const fitted = fitError(error);
    expect(fitted.violations.length + Number(fitted.metadata.more_violations)).toBe(30);
    expect(fitted.violations[0]?.description).toMatch(/^é{150}…$/);
  });

  const text = fc.oneof(
    fc.string({ unit: "binary", maxLength: 3000 }),
    fc.constantFrom(" ".repeat(5000), "\u{1f600}".repeat(3000), "\ud800".repeat(2000)),
  );
  const anyError = fc.record({
    message: text,
    metadata: fc.dictionary(fc.stringMatching(/^[a-z_]{1,12}$/), text, { maxKeys: 30 }),
    violations: fc.array(fc.record({ field: text, description: text, reason: text }), { maxLength: 60 }),
  });

  it("stays below 8 KB of trailers for any content, and as small within a message", () => {
    fc.assert(
      fc.property(anyError, ({ message, ...rest }) => {
        const error = new DeputeError(ErrorReason.INVALID_REQUEST, message, rest);
        expect(trailerBytes(error)).toBeLessThan(8000);
        expect(toBinary(StatusSchema, toStatus(error)).length).toBeLessThan(6000);
      }),
    );
  });
});
