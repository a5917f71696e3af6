import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addOutcome, bayesianView, HALF_LIFE_MS, NO_OUTCOMES, type Outcome } from "./bayesian.ts";

const NOW = 1e12;
const good: Outcome = { success: true, quality: 1, durationMs: 30_000 };
const bad: Outcome = { success: false, quality: 0, durationMs: 600_000 };
/** The weight of a first outcome whose witness belongs to a proven organization. */
const FULL = { standing: 1, repeats: 0 };
const after = (...outcomes: Outcome[]) =>
  outcomes.reduce((state, each) => addOutcome(state, each, NOW, FULL), NO_OUTCOMES);

describe("bayesianView", () => {
  it("is one half for an unknown agent, without confidence", () => {
    expect(bayesianView(NO_OUTCOMES, NOW)).toEqual({
      score: 0.5,
      reliability: 0.5,
      quality: 0.5,
      speed: 0.5,
      confidence: 0,
    });
  });

  it("moves towards the outcomes, with full confidence after ten", () => {
    const ten = after(...Array<Outcome>(10).fill(good));
    expect(bayesianView(ten, NOW)).toMatchObject({ confidence: 1 });
    expect(bayesianView(ten, NOW).reliability).toBeCloseTo(10.5 / 11, 12);
    expect(bayesianView(after(good), NOW).confidence).toBeCloseTo(0.1, 12);
    expect(bayesianView(after(bad), NOW).score).toBeLessThan(0.5);
  });

  it("moves at most a twentieth by strangers' good outcomes, and fully by a failure", () => {
    const strangers = Array.from({ length: 10_000 }).reduce<typeof NO_OUTCOMES>(
      (state) => addOutcome(state, good, NOW, { standing: 0.1, repeats: 0 }),
      NO_OUTCOMES,
    );
    const { score, reliability, quality, speed } = bayesianView(strangers, NOW);
    for (const each of [score, reliability, quality, speed]) expect(each).toBeLessThanOrEqual(0.55);
    const failed = addOutcome(NO_OUTCOMES, bad, NOW, { standing: 0.1, repeats: 50 });
    expect(bayesianView(failed, NOW)).toEqual(bayesianView(after(bad), NOW));
  });

  it("counts each further success from one source less", () => {
    const second = addOutcome(after(bad), good, NOW, { standing: 1, repeats: 1 });
    expect(bayesianView(second, NOW).reliability).toBeCloseTo(1 / 2.5, 12);
  });

  it("halves an outcome's weight each week", () => {
    const state = addOutcome(after(bad), good, NOW + HALF_LIFE_MS, FULL);
    expect(bayesianView(state, NOW + HALF_LIFE_MS).reliability).toBeCloseTo(1.5 / 2.5, 12);
  });

  it("reduces speed for durations over a minute", () => {
    const speed = (durationMs: number) => bayesianView(after({ ...good, durationMs }), NOW).speed;
    expect(speed(0)).toBe(speed(60_000));
    expect(speed(120_000)).toBeCloseTo((0.5 + 0.5) / 2, 12);
  });

  it("leaves quality unchanged without a verification", () => {
    expect(bayesianView(after({ ...good, quality: undefined }), NOW).quality).toBe(0.5);
  });

  it("stays between 0 and 1, and returns to one half with time", () => {
    const outcome = fc.record({
      success: fc.boolean(),
      quality: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
      durationMs: fc.nat(),
    });
    fc.assert(
      fc.property(fc.array(outcome, { maxLength: 30 }), (outcomes) => {
        const state = after(...outcomes);
        for (const value of Object.values(bayesianView(state, NOW))) {
          expect(value).toBeGreaterThanOrEqual(0);
          expect(value).toBeLessThanOrEqual(1);
        }
        expect(bayesianView(state, NOW + 100 * HALF_LIFE_MS).score).toBeCloseTo(0.5, 9);
      }),
    );
  });
});
