import { join } from "node:path";
import { amount, turns } from "../amount.ts";
import { type Apart, startApart } from "../apart.ts";
import type { Benchmark } from "../bench.ts";
import { inTurns, type Quotient } from "../turns.ts";
import { LINKS, type Operation, PEERS, type Peer } from "./peers/operations.ts";
import type { Question } from "./peers/process.ts";

/**
 * Compares tokens with those of @biscuit-auth/biscuit-wasm, with the literal stack of the specification, and with the
 * signatures alone. Each implementation has a process of its own. They take turns.
 */

const ROUNDS = turns(11);
const ROUND_MS = amount(150, 20);
/**
 * The name of one more contender in warm verifications: biscuit-wasm with the token's text. It verifies the text from
 * the start each time, because it has no memory of verified tokens.
 */
const FROM_TEXT = "biscuit-wasm, from the text";

export default async function benchmarks(): Promise<Benchmark[]> {
  const processes = new Map<Peer, Apart<object>>();
  for (const peer of PEERS) {
    processes.set(peer, await startApart(join(import.meta.dirname, "peers/process.ts"), [peer]));
  }
  const compare = (name: string, operation: Operation, links: number, quotients: Quotient[]): Benchmark => {
    const player = (name: string, peer: Peer, asked: Operation) => ({
      name,
      async round() {
        const question: Question = { operation: asked, links, ms: ROUND_MS };
        return (await processes.get(peer)?.ask<{ us: number }>(question))?.us ?? Number.NaN;
      },
    });
    const players = PEERS.map((peer) => player(peer, peer, operation));
    if (operation === "warm") players.push(player(FROM_TEXT, "biscuit-wasm", "cold"));
    return inTurns({
      name,
      unit: "us",
      rounds: ROUNDS,
      names: players.map(({ name }) => name),
      quotients,
      start: async () => ({ players, stop: () => {} }),
    });
  };
  const against = (by: Quotient["by"]): Quotient => ({
    name: "biscuit-wasm's time, by Depute's",
    of: "biscuit-wasm",
    by,
  });
  const all: Benchmark[] = [
    compare("mint against peers", "mint", 0, [against("Depute")]),
    ...LINKS.map((links) =>
      compare(`attenuate with ${links} attenuations before, against peers`, "attenuate", links, [
        against("Depute"),
      ]),
    ),
    ...LINKS.map((links) =>
      compare(`verify cold, ${links} attenuations, against peers`, "cold", links, [
        { ...against("Depute"), atLeast: 4.5 },
        { name: "Depute's time, by raw signatures", of: "Depute", by: "raw Ed25519", atMost: 1.3 },
        { name: "literal stack's time, by Depute's", of: "literal stack", by: "Depute" },
      ]),
    ),
    ...LINKS.map((links) =>
      compare(`verify warm, ${links} attenuations, against peers`, "warm", links, [
        against("Depute"),
        {
          name: "biscuit-wasm's time from the text, by Depute's",
          of: FROM_TEXT,
          by: "Depute",
          atLeast: 25,
        },
      ]),
    ),
  ];
  const last = all.at(-1) as Benchmark;
  const close = async () => {
    for (const process of processes.values()) await process.stop();
  };
  return [...all.slice(0, -1), { ...last, close }];
}
