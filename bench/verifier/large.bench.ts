import type { JsonValue } from "@bufbuild/protobuf";
import { AttestationSchema } from "@depute/contracts/delegateos/v0/attestation_pb";
import { formatTime } from "@depute/core";
import { newId, signObject } from "@depute/dct";
import { decode } from "@depute/wire";
import type { Benchmarks, Figure } from "../bench.ts";
import { engine, issuer, quantile, startVerifier, value } from "./client.ts";

const ROUNDS = 15;
/** Before them: what the compiler of the engine does with code that it sees for the first time is no body's fault. */
const WARM_UP = 3;
const MAX_HELD_MS = 20;

const list = (length: number, item: (i: number) => JsonValue): JsonValue =>
  Array.from({ length }, (_, i) => item(i));
const members = (length: number): JsonValue =>
  Object.fromEntries(Array.from({ length }, (_, i) => [`member ${i}`, i]));

/** What a message may hold: bounded by its bytes, or by its fields. */
const HELD: [name: string, output: JsonValue][] = [
  ["a text of 1 MB", "x".repeat(1_000_000)],
  ["a text of 1 MB that is escaped", '"'.repeat(500_000)],
  ["8,000 items", list(8000, () => 0)],
  ["4,000 members", members(4000)],
];
/** What is too much for a message, and comes as text. */
const TEXTS: [name: string, output: JsonValue][] = [
  ["500,000 items", list(500_000, () => 0)],
  ["300,000 empty objects", list(300_000, () => ({}))],
  ["50,000 members", members(50_000)],
];

/** How long the largest bodies hold the event loop of the verifier. */
const benchmarks: Benchmarks = async () => {
  const verifier = await startVerifier();
  const { id: contractId } = await verifier.agree({ title: "any" });
  const { verification, attestations, results } = verifier;
  const held = (name: string, call: () => Promise<unknown>, refused = ""): Figure => ({
    name,
    unit: "ms",
    atMost: MAX_HELD_MS,
    async measure() {
      const times: number[] = [];
      for (let i = -WARM_UP; i < ROUNDS; i++) {
        await verifier.load();
        const outcome = await call().then(
          () => "",
          (error: unknown) => String(error),
        );
        if (!outcome.includes(refused) || (refused === "") !== (outcome === "")) throw new Error(outcome);
        const { held: longest } = await verifier.load();
        if (i >= 0) times.push(longest);
      }
      return quantile(times, 1);
    },
  });
  const attestationOf = (output: JsonValue) => {
    const signed = signObject(
      engine,
      "attestation",
      {
        id: newId("att"),
        version: "0.1",
        contractId,
        delegationId: newId("del"),
        principal: issuer.principal.id,
        createdAt: formatTime(Date.now()),
        type: "completion",
        result: { success: true, output, costMicrocents: 1, durationMs: 1 },
        childAttestations: [],
      },
      issuer,
    );
    const decoded = decode(AttestationSchema, signed);
    if (!decoded.ok) throw new Error(decoded.error.message);
    return decoded.message;
  };
  const asMessage = ([name, output]: (typeof HELD)[number]) => {
    const message = value(output);
    // An attestation holds no output of more than half a megabyte.
    const signed = typeof output === "string" ? output.slice(0, output.length / 2) : output;
    return [
      held(`CheckOutput, ${name}`, () => verification.checkOutput({ contractId, output: message })),
      held(`CheckResultHash, ${name}`, () => results.checkResultHash({ result: message })),
      held(`RecordAttestation, ${name.replace("1 MB", "512 KB")}`, () =>
        attestations.recordAttestation({ attestation: attestationOf(signed) }),
      ),
    ];
  };
  const asText = ([name, output]: (typeof TEXTS)[number]) => {
    const message = value(output);
    const text = JSON.stringify(output);
    const attestation = attestationOf(output);
    return [
      held(`CheckOutput of text, ${name}`, () => verification.checkOutput({ contractId, outputJson: text })),
      held(`CheckResultHash of text, ${name}`, () => results.checkResultHash({ resultJson: text })),
      held(
        `refused: CheckOutput, ${name}`,
        () => verification.checkOutput({ contractId, output: message }),
        "resource_exhausted",
      ),
      held(
        `refused: RecordAttestation, ${name}`,
        () => attestations.recordAttestation({ attestation }),
        "resource_exhausted",
      ),
    ];
  };
  return [
    {
      name: `the largest bodies: longest that the event loop was held in ${ROUNDS} calls`,
      figures: [...HELD.flatMap(asMessage), ...TEXTS.flatMap(asText)],
      close: () => verifier.stop(),
    },
  ];
};
export default benchmarks;
