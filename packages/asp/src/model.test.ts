import { Performative } from "@depute/contracts/asp/v0/envelope_pb";
import type { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { nativeEngine } from "@depute/dct/native";
import fc from "fast-check";
import { expect, test } from "vitest";
import { isTerminal, objectsOf } from "./session.ts";
import { type Attempt, Model, type Verb } from "./testing/model.ts";
import { CAST, Stage } from "./testing/stage.ts";
import { exportTranscript, verifyTranscript } from "./transcript.ts";

const VERBS = Object.keys(Performative).filter((name) => name !== "UNSPECIFIED") as Verb[];

const attempts: fc.Arbitrary<Attempt[]> = fc.array(
  fc.record({
    actorIndex: fc.nat(4),
    // Messages that end a session are rare, so that most sessions become long.
    verb: fc.oneof(
      { weight: 12, arbitrary: fc.constantFrom<Verb[]>("PROPOSE", "ACCEPT", "INFORM", "COMMIT", "DELEGATE") },
      { weight: 6, arbitrary: fc.constantFrom<Verb[]>(...VERBS) },
    ),
    pick: fc.nat(20),
    variant: fc.nat(19),
  }),
  { minLength: 40, maxLength: 90 },
);

/**
 * The usual first messages of a session. Random runs begin with them, so that not every run ends before the
 * introductions.
 */
const OPENING: readonly Attempt[] = [
  { actorIndex: 0, verb: "PROPOSE", pick: 0, variant: 0 },
  { actorIndex: 1, verb: "ACCEPT", pick: 0, variant: 0 },
  { actorIndex: 0, verb: "INFORM", pick: 0, variant: 0 },
  { actorIndex: 1, verb: "INFORM", pick: 0, variant: 0 },
];

test("random sessions of two to five parties follow the table, and their transcripts verify", () => {
  const reached = new Set<SessionState>();
  let appended = 0;
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 5 }), fc.boolean(), attempts, (size, opens, tried) => {
      const cast = CAST.slice(0, size);
      const stage = new Stage(cast, nativeEngine);
      const model = new Model(cast);
      for (const attempt of [...(opens ? OPENING : []), ...tried]) {
        const actor = cast[attempt.actorIndex % size];
        if (actor === undefined) continue;
        const by = { ...attempt, actorIndex: attempt.actorIndex % size };
        const meaning = model.read(by);
        const { recipient, body } = meaning;
        const before = stage.session;
        const envelope = stage.write(actor, by.verb, body, recipient === undefined ? {} : { recipient });
        const expected = model.allows(by, meaning);
        const result = stage.offer(envelope);
        const code = result.ok ? "appended" : result.refusal.code;
        expect([code === "appended", code, by.verb, body, before.state]).toEqual([
          expected,
          code,
          by.verb,
          body,
          before.state,
        ]);
        if (!result.ok) {
          expect(stage.session).toEqual(before);
          continue;
        }
        appended += 1;
        model.apply(by, meaning, envelope.messageId);
        expect(stage.session.state).toBe(model.state);
        reached.add(model.state);
      }
      const transcript = exportTranscript(stage.session, stage.entries, stage.nowMs);
      const verdict = verifyTranscript(transcript, { engine: nativeEngine });
      expect(verdict.ok && verdict.session).toEqual(stage.session);
      for (const { status, escrow } of objectsOf(stage.session)) {
        if (isTerminal(stage.session.state)) {
          expect(status).not.toBe("open");
          expect(escrow?.state).not.toBe("held");
        }
      }
    }),
    { numRuns: 300, seed: 8 },
  );
  expect(reached.size).toBe(8);
  expect(appended).toBeGreaterThan(2000);
}, 60_000);
