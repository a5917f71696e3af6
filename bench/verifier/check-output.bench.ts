import { create, toBinary } from "@bufbuild/protobuf";
import {
  CheckOutputRequestSchema,
  VerificationService,
} from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { amount } from "../amount.ts";
import type { Benchmarks } from "../bench.ts";
import { envelope, h2load } from "../h2load.ts";
import {
  asCaller,
  hostileSchema,
  ITEMS,
  ITEMS_BY_PATTERN,
  output4k,
  quantile,
  startVerifier,
  value,
} from "./client.ts";

const IN_FLIGHT = 32;
const CONNECTIONS = 4;
const LOAD_SECONDS = amount(5);
const CALLS = amount(20_000);
const WARM_UP = amount(3_000);
const HOSTILE_SECONDS = amount(6);

/** Measures checks of 4 KB outputs under a known contract, also while another caller sends hostile schemas. */
const benchmarks: Benchmarks = async () => {
  const verifier = await startVerifier();
  const { id: contractId } = await verifier.agree(ITEMS);
  const output = value(output4k());
  const outputJson = JSON.stringify(output4k());
  const check = () => verifier.verification.checkOutput({ contractId, output }, asCaller("friend"));
  const checkText = () => verifier.verification.checkOutput({ contractId, outputJson }, asCaller("friend"));
  /** Makes the request of `checkText` for h2load: a gRPC envelope with the message in it. */
  const loadText = () =>
    h2load({
      url: `${verifier.url}/${VerificationService.typeName}/${VerificationService.method.checkOutput.name}`,
      headers: ["content-type: application/grpc", "te: trailers", "authorization: Bearer friend"],
      body: envelope(
        toBinary(CheckOutputRequestSchema, create(CheckOutputRequestSchema, { contractId, outputJson })),
      ),
      connections: CONNECTIONS,
      inFlightOfEach: IN_FLIGHT / CONNECTIONS,
      seconds: LOAD_SECONDS,
    });
  const many = async (call: typeof check, count: number) => {
    let left = count;
    const lane = async () => {
      while (left-- > 0) if ((await call()).result?.passed !== true) throw new Error("it does not pass");
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  };
  /** CPU time of the server's main thread for one call, in microseconds. */
  let cpu = Number.NaN;
  const textRate = async () => {
    await many(checkText, WARM_UP);
    await loadText();
    const before = await verifier.load();
    const calls = await loadText();
    cpu = ((await verifier.load()).cpu - before.cpu) / calls;
    await many(checkText, 1);
    return calls / LOAD_SECONDS;
  };
  const rate = async (call: typeof check) => {
    await many(call, WARM_UP);
    const before = await verifier.load();
    const start = performance.now();
    await many(call, CALLS);
    const seconds = (performance.now() - start) / 1000;
    cpu = ((await verifier.load()).cpu - before.cpu) / CALLS;
    return CALLS / seconds;
  };

  let p99 = Number.NaN;
  let held = Number.NaN;
  const patterned = await verifier.agree(ITEMS_BY_PATTERN);
  const checkInThread = () =>
    verifier.verification.checkOutput({ contractId: patterned.id, outputJson }, asCaller("friend"));

  async function underAttack(call: typeof check): Promise<number> {
    const hostile = await verifier.agree(hostileSchema());
    const ending = performance.now() + HOSTILE_SECONDS * 1000;
    const attack = async () => {
      while (performance.now() < ending) {
        const bad = { contractId: hostile.id, output: value("x") };
        await verifier.verification.checkOutput(bad, asCaller("foe")).catch(() => {});
      }
    };
    const attackers = Array.from({ length: 8 }, attack);
    await verifier.load();
    const times: number[] = [];
    while (performance.now() < ending) {
      const start = performance.now();
      await call();
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
        { name: "output as JSON text", unit: "calls/s", atLeast: 5000, measure: textRate },
        { name: "  main thread for each", unit: "us", atMost: 200, measure: () => cpu },
        {
          name: "output as JSON text, called by @grpc/grpc-js",
          unit: "calls/s",
          measure: () => rate(checkText),
        },
        { name: "  main thread for each", unit: "us", measure: () => cpu },
        {
          name: "the same, with a pattern in the schema, which a thread runs",
          unit: "calls/s",
          measure: () => rate(checkInThread),
        },
        { name: "  main thread for each", unit: "us", measure: () => cpu },
        {
          name: "output as google.protobuf.Value, called by @grpc/grpc-js",
          unit: "calls/s",
          measure: () => rate(check),
        },
        { name: "  main thread for each", unit: "us", measure: () => cpu },
      ],
    },
    {
      name: "the same, one after the other, while eight requests at a time bring a schema that never ends",
      figures: [
        { name: "p99", unit: "ms", atMost: 50, measure: () => underAttack(checkText) },
        { name: "  event loop held at most", unit: "ms", atMost: 20, measure: () => held },
        {
          name: "p99, with a pattern in the schema",
          unit: "ms",
          atMost: 50,
          measure: () => underAttack(checkInThread),
        },
        { name: "  event loop held at most", unit: "ms", atMost: 20, measure: () => held },
      ],
      close: () => verifier.stop(),
    },
  ];
};
export default benchmarks;
