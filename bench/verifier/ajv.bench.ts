import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  CheckOutputRequestSchema,
  VerificationService,
} from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { compileSchema, fitsQuickly, readQuickSchema } from "@depute/wire/json-schema";
import { Ajv } from "ajv";
import { turns } from "../amount.ts";
import { startApart } from "../apart.ts";
import type { Benchmark } from "../bench.ts";
import { envelope } from "../h2load.ts";
import { cpuOf, cpuPlayer } from "../rate-of-cpu.ts";
import { inTurns } from "../turns.ts";
import { ITEMS, output4k, startVerifier } from "./client.ts";

/**
 * Compares checks of a 4 KB output with bare Ajv: first the whole call over gRPC, then the function that checks. The
 * whole call of the reference has no caller, no contract and no limits (ajv-server.ts).
 */

const ROUNDS = turns(9);
const SECONDS = 1;
const CONNECTIONS = 4;
const IN_FLIGHT = 32;
const NAMES = ["bare Ajv behind @grpc/grpc-js", "Depute"] as const;

export default function benchmarks(): Benchmark[] {
  return [
    inTurns({
      name: `checks of a 4 KB output over gRPC, ${IN_FLIGHT} in flight, against bare Ajv`,
      unit: "calls a second of CPU time",
      rounds: ROUNDS,
      names: NAMES,
      quotients: [{ name: "Depute, by bare Ajv", of: NAMES[1], by: NAMES[0] }],
      start: startBoth,
    }),
    functions(),
  ];
}

async function startBoth() {
  const verifier = await startVerifier();
  const bare = await startApart<{ url: string }>(join(import.meta.dirname, "ajv-server.ts"));
  const { id: contractId } = await verifier.agree(ITEMS);
  const outputJson = JSON.stringify(output4k());
  const loadOf = (url: string) => ({
    url: `${url}/${VerificationService.typeName}/${VerificationService.method.checkOutput.name}`,
    headers: ["content-type: application/grpc", "te: trailers", "authorization: Bearer friend"],
    body: envelope(
      toBinary(CheckOutputRequestSchema, create(CheckOutputRequestSchema, { contractId, outputJson })),
    ),
    connections: CONNECTIONS,
    inFlightOfEach: IN_FLIGHT / CONNECTIONS,
    seconds: SECONDS,
  });
  const cpuOfVerifier = async () => (await verifier.load()).cpuOfAll;
  return {
    players: [
      cpuPlayer(NAMES[0], () => cpuOf(bare), loadOf(bare.started.url)),
      cpuPlayer(NAMES[1], cpuOfVerifier, loadOf(verifier.url)),
    ],
    async stop() {
      await Promise.all([verifier.stop(), bare.stop()]);
    },
  };
}

/** Each contender reads the text of the output, and checks the value. */
function functions(): Benchmark {
  const text = JSON.stringify(output4k());
  const bare = new Ajv({ strict: false }).compile(ITEMS);
  const ours = compileSchema(ITEMS, "draft-07", "contract");
  const quick = readQuickSchema(ITEMS);
  if (quick === undefined) throw new Error("the schema has no quick form");
  const must = (passed: boolean) => {
    if (!passed) throw new Error("it does not pass");
  };
  return {
    name: "parsing and checking a 4 KB output, without a call",
    contenders: [
      { name: "bare Ajv", run: () => must(bare(JSON.parse(text))) },
      { name: "Depute's compiled schema, with bounds", run: () => must(ours(JSON.parse(text)).length === 0) },
      { name: "Depute's quick schema, strict JSON", run: () => must(fitsQuickly(quick, text)) },
    ],
  };
}
