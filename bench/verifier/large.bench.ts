import type { JsonValue } from "@bufbuild/protobuf";
import { AttestationSchema } from "@depute/contracts/delegateos/v0/attestation_pb";
import { formatTime } from "@depute/core";
import { newId, signObject } from "@depute/dct";
import { decode } from "@depute/wire";
import { amount } from "../amount.ts";
import type { Benchmarks, Figure } from "../bench.ts";
import { engine, issuer, quantile, startVerifier, value } from "./client.ts";

const ROUNDS = amount(15);
/** Warm-up calls, so that the engine's compilation of new code is not measured. */
const WARM_UP = 3;
const MAX_HELD_MS = 20;

const list = (length: number, item: (i: number) => JsonValue): JsonValue =>
  Array.from({ length }, (_, i) => item(i));
const members = (length: number): JsonValue =>
  Object.fromEntries(Array.from({ length }, (_, i) => [`member ${i}`, i]));

/**
 * The largest outputs that fit into a request as a message. Some are limited by their bytes, others by their number of
 * fields.
 */
const HELD: [name: string, output: JsonValue][] = [
  ["a text of 1 MB", "x".repeat(1_000_000)],
  ["a text of 1 MB that is escaped", '"'.repeat(500_000)],
  ["8,000 items", list(8000, () => 0)],
  ["4,000 members", members(4000)],
];
/** Outputs that are too large to be sent as a message, so the request carries them as JSON text. */
const TEXTS: [name: string, output: JsonValue][] = [
  ["500,000 items", list(500_000, () => 0)],
  ["300,000 empty objects", list(300_000, () => ({}))],
  ["50,000 members", members(50_000)],
];

/** Measures how long the largest bodies block the verifier's event loop. */
const benchmarks: Benchmarks = async () => {
  const verifier = await startVerifier();
  const { id: contractId } = await verifier.agree({ title: "any" });
  const { verification, attestations, results } = verifier;
  const holdFigure = (name: string, call: () => Promise<unknown>, refused = ""): Figure => ({
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
    // An attestation may contain at most half a megabyte of output, so longer texts are cut.
    const signed = typeof output === "string" ? output.slice(0, output.length / 2) : output;
    return [
      holdFigure(`CheckOutput, ${name}`, () => verification.checkOutput({ contractId, output: message })),
      holdFigure(`CheckResultHash, ${name}`, () => results.checkResultHash({ result: message })),
      holdFigure(`RecordAttestation, ${name.replace("1 MB", "512 KB")}`, () =>
        attestations.recordAttestation({ attestation: attestationOf(signed) }),
      ),
    ];
  };
  const asText = ([name, output]: (typeof TEXTS)[number]) => {
    const message = value(output);
    const text = JSON.stringify(output);
    const attestation = attestationOf(output);
    return [
      holdFigure(`CheckOutput of text, ${name}`, () =>
        verification.checkOutput({ contractId, outputJson: text }),
      ),
      holdFigure(`CheckResultHash of text, ${name}`, () => results.checkResultHash({ resultJson: text })),
      holdFigure(
        `refused: CheckOutput, ${name}`,
        () => verification.checkOutput({ contractId, output: message }),
        "resource_exhausted",
      ),
      holdFigure(
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
