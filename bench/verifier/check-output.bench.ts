import type { Benchmarks } from "../bench.ts";
import { as, hostileSchema, ITEMS, output4k, quantile, startVerifier, value } from "./client.ts";

const IN_FLIGHT = 32;
const CALLS = 20_000;
const HOSTILE_SECONDS = 6;

/** Outputs of 4 KB under a known contract; and the same while somebody sends schemas that never end. */
const benchmarks: Benchmarks = async () => {
  const verifier = await startVerifier();
  const { id: contractId } = await verifier.agree(ITEMS);
  const output = value(output4k());
  const outputJson = JSON.stringify(output4k());
  const check = () => verifier.verification.checkOutput({ contractId, output }, as("friend"));
  const checkText = () => verifier.verification.checkOutput({ contractId, outputJson }, as("friend"));
  const many = async (call: typeof check, count: number) => {
    let left = count;
    const lane = async () => {
      while (left-- > 0) if ((await call()).result?.passed !== true) throw new Error("it does not pass");
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  };
  /** CPU time of the server's main thread for one call, in microseconds. */
  let cpu = Number.NaN;
  const rate = async (call: typeof check) => {
    await many(call, 3000);
    const before = await verifier.load();
    const start = performance.now();
    await many(call, CALLS);
    const seconds = (performance.now() - start) / 1000;
    cpu = ((await verifier.load()).cpu - before.cpu) / CALLS;
    return CALLS / seconds;
  };

  let p99 = Number.NaN;
  let held = Number.NaN;
  async function underAttack(): Promise<number> {
    const hostile = await verifier.agree(hostileSchema());
    const ending = performance.now() + HOSTILE_SECONDS * 1000;
    const attack = async () => {
      while (performance.now() < ending) {
        const call = { contractId: hostile.id, output: value("x") };
        await verifier.verification.checkOutput(call, as("foe")).catch(() => {});
      }
    };
    const attackers = Array.from({ length: 8 }, attack);
    await verifier.load();
    const times: number[] = [];
    while (performance.now() < ending) {
      const start = performance.now();
      await checkText();
      times.push(performance.now() - start);
    }
    held = (await verifier.load()).held;
    await Promise.all(attackers);
    p99 = quantile(times, 0.99);
    return p99;
  }

  return [
    {
      name: `checks of a 4 KB output with a known contract over gRPC, ${IN_FLIGHT} in flight`,
      figures: [
        { name: "output as JSON text", unit: "calls/s", atLeast: 5000, measure: () => rate(checkText) },
        { name: "  main thread for each", unit: "us", atMost: 200, measure: () => cpu },
        { name: "output as google.protobuf.Value", unit: "calls/s", measure: () => rate(check) },
        { name: "  main thread for each", unit: "us", measure: () => cpu },
      ],
    },
    {
      name: "the same, one after the other, while eight requests at a time bring a schema that never ends",
      figures: [
        { name: "p99", unit: "ms", atMost: 50, measure: underAttack },
        { name: "event loop held at most", unit: "ms", atMost: 20, measure: () => held },
      ],
      close: () => verifier.stop(),
    },
  ];
};
export default benchmarks;
