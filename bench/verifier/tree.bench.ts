import { AttestationSchema } from "@depute/contracts/delegateos/v0/attestation_pb";
import { formatTime } from "@depute/core";
import { newId, signObject } from "@depute/dct";
import { decode } from "@depute/wire";
import { amount } from "../amount.ts";
import type { Benchmarks } from "../bench.ts";
import { engine, ITEMS, issuer, quantile, startVerifier } from "./client.ts";

const NODES = amount(1000);
const FAN_OUT = 10;
const RUNS = amount(15);

/**
 * Measures a tree of 1,000 attestations, each with an output. An attestation above the leaves has up to ten children.
 * Below the root there are three levels.
 */
const benchmarks: Benchmarks = async () => {
  const verifier = await startVerifier();
  const { id: contractId } = await verifier.agree(ITEMS);
  const ids: string[] = Array.from({ length: NODES }, () => newId("att"));
  // Stores children first, because an attestation may name only children that are already stored.
  for (let i = NODES - 1; i >= 0; i--) {
    const children = ids.slice(i * FAN_OUT + 1, i * FAN_OUT + 1 + FAN_OUT);
    const attestation = signObject(
      engine,
      "attestation",
      {
        id: ids[i] ?? "",
        version: "0.1",
        contractId,
        delegationId: newId("del"),
        principal: issuer.principal.id,
        createdAt: formatTime(Date.now()),
        type: "delegation_verification",
        result: {
          success: true,
          output: { items: [{ id: i, name: "item", tags: ["a"] }] },
          costMicrocents: 1,
          durationMs: 1,
        },
        childAttestations: children,
      },
      issuer,
    );
    const decoded = decode(AttestationSchema, attestation);
    if (!decoded.ok) throw new Error(decoded.error.message);
    await verifier.attestations.recordAttestation({ attestation: decoded.message });
  }
  let held = Number.NaN;
  return [
    {
      name: `a tree of ${NODES} attestations, verified whole over gRPC`,
      figures: [
        {
          name: `median of ${RUNS}`,
          unit: "ms",
          atMost: 150,
          async measure() {
            const times: number[] = [];
            await verifier.load();
            for (let i = 0; i < RUNS; i++) {
              const start = performance.now();
              const { valid, nodes } = await verifier.attestations.verifyAttestationTree({
                attestationId: ids[0] ?? "",
              });
              times.push(performance.now() - start);
              if (!valid || nodes.length !== NODES) throw new Error("the tree does not hold");
            }
            held = (await verifier.load()).held;
            return quantile(times, 0.5);
          },
        },
        { name: "event loop held at most", unit: "ms", atMost: 20, measure: () => held },
      ],
      close: () => verifier.stop(),
    },
  ];
};
export default benchmarks;
