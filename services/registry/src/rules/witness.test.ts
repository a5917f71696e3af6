import { create } from "@bufbuild/protobuf";
import {
  AttestationOutcomeSchema,
  RatingSchema,
  SessionOutcomeSchema,
  SessionResult,
} from "@depute/contracts/depute/registry/v1/trust_service_pb";
import type { Affiliation } from "@depute/core";
import { describe, expect, it } from "vitest";
import { applyEvidence, type Effect, type TrustState, trustScore, unknownTrust } from "./trust.ts";
import { attestationEffects, endorsementEffects, ratingEffects, sessionEffects } from "./trust-effects.ts";
import {
  bestWitness,
  isKnown,
  type Source,
  STRANGER_STANDING,
  sourceNames,
  type Witness,
  withGains,
  witnessStanding,
  worthOf,
} from "./witness.ts";

const NOW = 1e12;
const DAY = 86_400_000;
const LEVEL_2 = 50;
const agent = (agentId: string, principal: string, ...organizations: string[]): Affiliation => ({
  agentId,
  principal,
  organizations,
});
const witness = (affiliation: Affiliation, score = 10): Witness => ({ affiliation, score });

describe("standing", () => {
  it.each<[string, Witness, number]>([
    ["of a proven organization", witness(agent("a", "k", "org"), 0), 1],
    ["of a stranger", witness(agent("a", "k"), 49.9), STRANGER_STANDING],
    ["of an established agent", witness(agent("a", "k"), 50), 0.5],
    ["of a premium agent", witness(agent("a", "k"), 92), 0.92],
  ])("%s", (_, witness, expected) => {
    expect(witnessStanding(witness, LEVEL_2)).toBe(expected);
    expect(isKnown(witnessStanding(witness, LEVEL_2))).toBe(expected > STRANGER_STANDING);
  });
});

describe("the witness of verified work", () => {
  const [seller, buyer] = [agent("seller", "ks"), witness(agent("buyer", "kb"))];
  it.each<[string, Witness | undefined, boolean]>([
    ["is the counterpart without a third party", undefined, false],
    ["is a third party of a proven organization", witness(agent("auditor", "ka", "org")), true],
    ["is no third party of the seller's key", witness(agent("sock", "ks", "org")), false],
    ["is no third party of the buyer's key", witness(agent("sock", "kb", "org")), false],
    ["is no third party that is a stranger as well", witness(agent("sock", "kx")), false],
  ])("%s", (_, verifier, isVerifier) => {
    expect(bestWitness(seller, buyer, verifier, LEVEL_2)).toBe(isVerifier ? verifier : buyer);
  });

  it("is the counterpart, if its standing is higher", () => {
    const proven = witness(agent("buyer", "kb", "org:buyer"));
    expect(bestWitness(seller, proven, witness(agent("auditor", "ka"), 80), LEVEL_2)).toBe(proven);
  });
});

describe("a source", () => {
  it("has the names of an agent, its key and its organizations", () => {
    expect(sourceNames(agent("a", "k", "o1", "o2"))).toEqual(["aa", "pk", "oo1", "oo2"]);
  });

  it("counts gains by component, with a half-life of half a year", () => {
    const effects: Effect[] = [
      { component: "peerEndorsements", gain: 1 },
      { component: "responseQuality", breach: 1 },
    ];
    const twice = withGains(withGains(undefined, effects, NOW), effects, NOW);
    expect(twice).toEqual({ time: NOW, gains: { peerEndorsements: 2 } });
    const later = NOW + 180 * DAY;
    expect(worthOf(1, [twice], later).repeats("peerEndorsements")).toBeCloseTo(1, 9);
    expect(withGains(twice, effects, later).gains.peerEndorsements).toBeCloseTo(2, 9);
    expect(worthOf(1, [twice], NOW).repeats("responseQuality")).toBe(0);
  });

  it("counts the name with the most gains", () => {
    const source = (gains: number): Source => ({ time: NOW, gains: { peerEndorsements: gains } });
    expect(worthOf(1, [source(1), source(7), source(3)], NOW).repeats("peerEndorsements")).toBe(7);
  });
});

/** A group of agents that give positive evidence about each other. */
class World {
  readonly #trust = new Map<string, TrustState>();
  readonly #sources = new Map<string, Source>();
  readonly #agents: readonly Affiliation[];

  constructor(agents: readonly Affiliation[]) {
    this.#agents = agents;
  }

  score(agentId: string): number {
    return trustScore(this.#trust.get(agentId) ?? unknownTrust(true, NOW));
  }

  /** Records all kinds of positive evidence about one agent, with another agent as the witness. */
  praise(subject: Affiliation, counterpart: Affiliation): void {
    const staked = (result: SessionResult) => create(SessionOutcomeSchema, { result, staked: true });
    const { COMPLETED, FULFILLED, PAID } = SessionResult;
    const kinds = [
      ...[COMPLETED, FULFILLED, PAID].map((result) => sessionEffects(staked(result), true)),
      attestationEffects(create(AttestationOutcomeSchema, { success: true, quality: 1 })),
      ratingEffects(create(RatingSchema, { stars: 5 })),
      endorsementEffects(),
    ];
    const counterpartWitness = witness(counterpart, this.score(counterpart.agentId));
    const names = sourceNames(counterpart).map((name) => `${subject.agentId}<${name}`);
    for (const effects of kinds) {
      const sources = names.flatMap((name) => this.#sources.get(name) ?? []);
      const worth = worthOf(witnessStanding(counterpartWitness, LEVEL_2), sources, NOW);
      const before = this.#trust.get(subject.agentId) ?? unknownTrust(true, NOW);
      this.#trust.set(subject.agentId, applyEvidence(before, effects, NOW, worth));
      for (const name of names) this.#sources.set(name, withGains(this.#sources.get(name), effects, NOW));
    }
  }

  /** Calls `praise` as often as `sessions` says. The agents take turns as subject and as witness. */
  play(sessions: number): void {
    const { length } = this.#agents;
    for (let i = 0; i < sessions; i++) {
      const subject = this.#agents[i % length] as Affiliation;
      const step = 1 + (Math.floor(i / length) % (length - 1));
      this.praise(subject, this.#agents[(i + step) % length] as Affiliation);
    }
  }
}

const QUARTER = 10 + (LEVEL_2 - 10) / 4;

describe("farming", () => {
  it.each([
    [10, 10_000],
    [300, 30_000],
  ])("by %d keys with %d sessions raises no score by a quarter of the way to level 2", (keys, sessions) => {
    const sybils = Array.from({ length: keys }, (_, i) => agent(`sybil-${i}`, `key-${i}`));
    const world = new World(sybils);
    world.play(sessions);
    const best = Math.max(...sybils.map(({ agentId }) => world.score(agentId)));
    expect(best).toBeGreaterThan(10);
    expect(best).toBeLessThan(QUARTER);
  });

  it("by one proven counterpart never raises an agent to level 2", () => {
    const [sybil, friend] = [agent("sybil", "key"), agent("friend", "other", "org")];
    const world = new World([sybil, friend]);
    for (let i = 0; i < 10_000; i++) world.praise(sybil, friend);
    expect(world.score("sybil")).toBeGreaterThan(QUARTER);
    expect(world.score("sybil")).toBeLessThan(LEVEL_2);
  });

  it("gains less than honest work with several organizations", () => {
    const honest = agent("honest", "key");
    const buyers = Array.from({ length: 12 }, (_, i) => agent(`buyer-${i}`, `key-${i}`, `org-${i}`));
    const world = new World([honest, ...buyers]);
    for (let i = 0; i < 120; i++) world.praise(honest, buyers[i % buyers.length] as Affiliation);
    expect(world.score("honest")).toBeGreaterThan(LEVEL_2);
  });
});
