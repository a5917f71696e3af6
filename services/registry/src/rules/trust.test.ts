import { create } from "@bufbuild/protobuf";
import {
  AttestationOutcomeSchema,
  RatingSchema,
  SessionOutcomeSchema,
  SessionResult,
} from "@depute/contracts/depute/registry/v1/trust_service_pb";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  applyEvidence,
  COMPONENTS,
  type Component,
  decay,
  type Effect,
  type TrustState,
  trustLevel,
  trustScore,
  unknownTrust,
  WEIGHTS,
} from "./trust.ts";
import { attestationEffects, endorsementEffects, ratingEffects, sessionEffects } from "./trust-effects.ts";
import { STRANGER_STANDING, worthOf } from "./witness.ts";

const DAY = 86_400_000;
const NOW = 1_000 * DAY;
const LEVELS = [25, 50, 75, 90];

const stateOf = (values: readonly number[], time = NOW): TrustState => ({
  components: Object.fromEntries(COMPONENTS.map((name, i) => [name, values[i] ?? 0])) as Record<
    Component,
    number
  >,
  time,
  count: 0,
});
const even = (value: number) => stateOf(COMPONENTS.map(() => value));
const success = attestationEffects(create(AttestationOutcomeSchema, { success: true, quality: 1 }));
const staked = (result: SessionResult, isStaked: boolean, isKnown = true) =>
  sessionEffects(create(SessionOutcomeSchema, { result, staked: isStaked }), isKnown);
const breached = (severity: number) =>
  sessionEffects(create(SessionOutcomeSchema, { result: SessionResult.BREACHED, severity }), false);
/** The worth of a first outcome whose witness belongs to a proven organization. */
const FULL = worthOf(1, [], NOW);
const after = (state: TrustState, effects: readonly Effect[], now = NOW, worth = FULL) =>
  trustScore(applyEvidence(state, effects, now, worth)) - trustScore(state);

const values = fc.array(fc.double({ min: 0, max: 100, noNaN: true }), { minLength: 8, maxLength: 8 });
const effects: fc.Arbitrary<Effect[]> = fc.constantFrom(
  success,
  attestationEffects(create(AttestationOutcomeSchema, { success: false })),
  ...[1, 2, 3, 4, 5].map(breached),
  ...[1, 2, 3, 4, 5].map((stars) => ratingEffects(create(RatingSchema, { stars }))),
  ...[1, 2, 3, 4, 6, 7].map((result) =>
    sessionEffects(
      create(SessionOutcomeSchema, { result: result as SessionResult, severity: 2, staked: true }),
      true,
    ),
  ),
  endorsementEffects(),
);

describe("trustScore", () => {
  it("has eight weights with the sum 1", () => {
    expect(Object.values(WEIGHTS)).toHaveLength(8);
    expect(Object.values<number>(WEIGHTS).reduce((a, b) => a + b)).toBeCloseTo(1, 12);
    expect(trustScore(even(73))).toBeCloseTo(73, 9);
  });

  it("starts low, also for an agent with a proven key", () => {
    expect(trustScore(unknownTrust(false, NOW))).toBe(0);
    expect(trustLevel(trustScore(unknownTrust(true, NOW)), LEVELS)).toBe(0);
  });
});

describe("trustLevel", () => {
  it.each([
    [0, 0],
    [24.9, 0],
    [25, 1],
    [49, 1],
    [50, 2],
    [73, 2],
    [74.9, 2],
    [75, 3],
    [85, 3],
    [90, 4],
    [92, 4],
    [100, 4],
  ])("of %d is %d", (score, level) => {
    expect(trustLevel(score, LEVELS)).toBe(level);
  });
});

describe("evidence", () => {
  it("keeps every component and the score between 0 and 100", () => {
    fc.assert(
      fc.property(values, fc.array(effects, { maxLength: 40 }), (start, events) => {
        const end = events.reduce((state, each) => applyEvidence(state, each, NOW, FULL), stateOf(start));
        for (const name of COMPONENTS) {
          expect(end.components[name]).toBeGreaterThanOrEqual(0);
          expect(end.components[name]).toBeLessThanOrEqual(100);
        }
        expect(trustScore(end)).toBeLessThanOrEqual(100);
      }),
    );
  });

  it("gains less at higher values", () => {
    fc.assert(
      fc.property(values, values, (a, b) => {
        const low = stateOf(a.map((value, i) => Math.min(value, b[i] ?? 0)));
        const high = stateOf(a.map((value, i) => Math.max(value, b[i] ?? 0)));
        expect(after(low, success)).toBeGreaterThanOrEqual(after(high, success) - 1e-9);
      }),
    );
  });

  it("orders gains as the text's samples do: at 68 over at 85 over at 92, and none at 100", () => {
    const [at68, at85, at92] = [68, 85, 92].map((value) => after(even(value), success));
    expect(at68).toBeGreaterThan(at85 ?? 0);
    expect(at85).toBeGreaterThan(at92 ?? 0);
    expect(at92).toBeGreaterThan(0);
    expect(after(even(100), success)).toBeCloseTo(0, 9);
  });

  it.each([50, 70, 90])("at %d a serious breach outweighs ten successes", (value) => {
    const kept4 = create(SessionOutcomeSchema, { result: SessionResult.FULFILLED, staked: true });
    const capped = Array.from({ length: 10 }).reduce<TrustState>(
      (state) => applyEvidence(state, sessionEffects(kept4, true), NOW, FULL),
      even(value),
    );
    const end = applyEvidence(capped, breached(3), NOW, FULL);
    expect(trustScore(end)).toBeLessThan(value);
  });

  it("loses more with a more severe breach, and never gains", () => {
    const losses = [1, 2, 3, 4, 5].map((severity) => -after(even(80), breached(severity)));
    expect(losses).toEqual([...losses].sort((a, b) => a - b));
    expect(losses[0]).toBeGreaterThan(0);
  });

  it("scales with the witness's standing, and shrinks with repetition", () => {
    const gain = (standing: number, gains: number) => {
      const source = { time: NOW, gains: { peerEndorsements: gains } };
      return after(even(5), endorsementEffects(), NOW, worthOf(standing, [source], NOW));
    };
    expect(gain(0.6, 0)).toBeCloseTo(0.6 * gain(1, 0), 9);
    const series = [0, 1, 2, 10, 1000].map((gains) => gain(1, gains));
    expect(series).toEqual([...series].sort((a, b) => b - a));
    expect(series[1]).toBeLessThan((series[0] ?? 0) / 2);
    expect(gain(STRANGER_STANDING, 0)).toBeLessThan(gain(0.5, 0));
  });

  it("from strangers raises no component above 10, and lowers none above it", () => {
    const strangers = worthOf(STRANGER_STANDING, [], NOW);
    expect(after(even(10), success, NOW, strangers)).toBe(0);
    expect(after(even(60), success, NOW, strangers)).toBe(0);
    expect(after(even(9.99), success, NOW, strangers)).toBeGreaterThan(0);
  });

  it("counts a breach in full for any witness", () => {
    const strangers = worthOf(STRANGER_STANDING, [{ time: NOW, gains: {} }], NOW);
    expect(after(even(80), breached(3), NOW, strangers)).toBe(after(even(80), breached(3)));
  });

  it.each<[string, Effect[]]>([
    [
      "a success without a verification",
      attestationEffects(create(AttestationOutcomeSchema, { success: true })),
    ],
    ["a session that was closed in order", staked(SessionResult.COMPLETED, false)],
    ["a commitment over nothing", staked(SessionResult.FULFILLED, false)],
    ["a payment without escrow", staked(SessionResult.PAID, false)],
    ["a stranger's invitation without an answer", staked(SessionResult.TIMED_OUT, false, false)],
  ])("%s changes nothing", (_, nothing) => {
    expect(nothing).toEqual([]);
  });

  it.each<[number, -1 | 0 | 1]>([
    [1, -1],
    [2, -1],
    [3, 0],
    [4, 1],
    [5, 1],
  ])("of %d stars moves the score by its sign", (stars, sign) => {
    expect(Math.sign(after(even(50), ratingEffects(create(RatingSchema, { stars }))))).toBe(sign);
  });
});

describe("decay", () => {
  it("removes nothing in the first month, then half of the fading part each half year", () => {
    expect(decay(even(80), NOW + 30 * DAY)).toEqual(even(80));
    const faded = decay(even(80), NOW + 210 * DAY);
    expect(faded.components.commitmentFulfillment).toBeCloseTo(40, 9);
    expect(faded.components.identityVerification).toBe(80);
  });

  it("grows with time, never removes all, and does not depend on the number of reads", () => {
    const days = fc.integer({ min: 0, max: 2_000 });
    fc.assert(
      fc.property(values, days, days, (start, a, b) => {
        const [early, late] = [Math.min(a, b), Math.max(a, b)];
        const state = stateOf(start);
        expect(trustScore(decay(state, NOW + late * DAY))).toBeLessThanOrEqual(
          trustScore(decay(state, NOW + early * DAY)) + 1e-9,
        );
        expect(decay(state, NOW + late * DAY).time).toBe(state.time);
      }),
    );
  });
});
