import { RevocationScope } from "@depute/contracts/delegateos/v0/revocation_pb";
import { keypairFromSeed, RevocationSet, verifyToken } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { amount } from "../amount.ts";
import type { Benchmark } from "../bench.ts";
import { type Served, serve, startRedis } from "./serve.ts";

/**
 * Measures the time from the call that revokes a token to the token's denial in another process. This process follows
 * the log and verifies tokens itself. Redis wakes the log's readers, as in a deployment with many processes.
 */

const ROUNDS = amount(300);
/** Number of revocations in flight. `MANY` is their total number. */
const AT_ONCE = 32;
const MANY = amount(960);
const WARM_UP = amount(50);
const holder = keypairFromSeed(engine, new Uint8Array(32).fill(9)).principal.id;

export default async function benchmarks(): Promise<Benchmark[]> {
  const redis = await startRedis();
  if (redis === undefined) throw new Error("there is no redis-server on the PATH, and no DEPUTE_REDIS_URL");
  const served = await serve(redis.url);
  let measured: Promise<number[]> | undefined;
  const sorted = () => {
    measured ??= measure(served);
    return measured;
  };
  const at = async (part: number) => {
    const times = await sorted();
    return times[Math.floor((times.length - 1) * part)] ?? Number.NaN;
  };
  return [
    {
      name: `a revocation, from the call to the denial in another process, with Redis; ${ROUNDS} times`,
      figures: [
        { name: "median", unit: "ms", measure: () => at(0.5) },
        { name: "p99", unit: "ms", measure: () => at(0.99), atMost: 50 },
      ],
    },
    {
      name: `a revocation, from the call to its acknowledgement, which is durable in the log and in the checkpoint`,
      figures: [
        { name: "one at a time, median", unit: "ms", measure: () => acknowledged(served) },
        { name: `${AT_ONCE} at once`, unit: "1/s", measure: () => acknowledgedPerSecond(served) },
      ],
      close: () => {
        served.close();
        redis.close();
      },
    },
  ];
}

let minted = 0;
async function mintOne({ tokens }: Served): Promise<string> {
  const { revocationId } = await tokens.mintToken({
    ...{ requestId: `m${minted++}`, delegatee: holder, contractId: "ct_a1b2c3d4e5f6" },
    capabilities: [{ namespace: "docs", action: "read", resource: "/**" }],
  });
  return revocationId;
}

async function acknowledged(served: Served): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const revocationId = await mintOne(served);
    const start = performance.now();
    await served.revocations.revokeMintedToken({ revocationId, scope: RevocationScope.BLOCK });
    times.push(performance.now() - start);
  }
  return times.sort((a, b) => a - b)[ROUNDS >> 1] ?? Number.NaN;
}

async function acknowledgedPerSecond(served: Served): Promise<number> {
  const ids: string[] = [];
  for (let n = 0; n < MANY; n++) ids.push(await mintOne(served));
  const start = performance.now();
  const one = async () => {
    for (let id = ids.pop(); id !== undefined; id = ids.pop()) {
      await served.revocations.revokeMintedToken({ revocationId: id, scope: RevocationScope.BLOCK });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return MANY / ((performance.now() - start) / 1000);
}

/** Returns the milliseconds of each round, in ascending order. */
async function measure({ tokens, revocations }: Served): Promise<number[]> {
  const { principal } = await tokens.getIssuer({});
  const known = new RevocationSet();
  let onEntry = () => {};
  const stop = new AbortController();
  const following = (async () => {
    for await (const { revocation } of revocations.watchRevocations({}, { signal: stop.signal })) {
      known.add(revocation?.entry?.revocationId ?? "");
      onEntry();
    }
  })().catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });

  const times: number[] = [];
  for (let round = 0; round < WARM_UP + ROUNDS; round++) {
    const { token, revocationId } = await tokens.mintToken({
      ...{ requestId: `r${round}`, delegatee: holder, contractId: "ct_a1b2c3d4e5f6" },
      capabilities: [{ namespace: "docs", action: "read", resource: "/**" }],
    });
    const isDenied = () => {
      const context = { trustedRoots: new Set([principal]), revocations: known, now: Date.now() };
      const result = verifyToken(engine, token?.token ?? "", {
        ...{ ...context, spentMicrocents: 0, holder: "bearer" },
      });
      return !result.ok && result.denial.type === "revoked";
    };
    const denied = new Promise<number>((resolve) => {
      onEntry = () => {
        if (isDenied()) resolve(performance.now());
      };
    });
    const start = performance.now();
    await revocations.revokeMintedToken({ revocationId, scope: RevocationScope.BLOCK });
    const time = (await denied) - start;
    if (round >= WARM_UP) times.push(time);
  }
  stop.abort();
  await following;
  return times.sort((a, b) => a - b);
}
