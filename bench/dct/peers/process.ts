import { biscuit } from "./biscuit.ts";
import { depute } from "./depute.ts";
import { literalStack } from "./literal-stack.ts";
import type { Operation, Operations, Peer } from "./operations.ts";
import { raw } from "./raw.ts";

/**
 * Runs one implementation in a separate process. The argument is its name. The process answers each message with the
 * microseconds of CPU time of one call, measured for about the milliseconds that the message states.
 */

export interface Question {
  readonly operation: Operation;
  readonly links: number;
  readonly ms: number;
}

const START: Record<Peer, () => Operations | Promise<Operations>> = {
  "raw Ed25519": raw,
  "biscuit-wasm": biscuit,
  "literal stack": literalStack,
  Depute: depute,
};

const operations = await START[process.argv[2] as Peer]();
const known = new Map<string, () => void>();

process.on("disconnect", () => process.exit());
process.on("message", ({ operation, links, ms }: Question) => {
  const key = `${operation} ${links}`;
  const run = known.get(key) ?? operations[operation](links);
  known.set(key, run);
  const before = process.threadCpuUsage();
  const endMs = performance.now() + ms;
  let calls = 0;
  do {
    run();
    calls++;
  } while (performance.now() < endMs);
  const { user, system } = process.threadCpuUsage(before);
  process.send?.({ us: (user + system) / calls });
});
process.send?.({});
