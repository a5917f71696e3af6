import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import { TaskContractSchema } from "@depute/contracts/delegateos/v0/contract_pb";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { ContractService } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { attenuateToken, createProof, keypairFromSeed, parseToken, serialiseToken } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { decode } from "@depute/wire";
import { inFlight } from "../in-flight.ts";
import { taskRunner } from "../tasks/complete-tasks.ts";
import { AGENT } from "../tasks/platform.ts";
import { contractOf, ITEMS, output4k } from "../verifier/client.ts";
import type { CALLS } from "./parts.ts";

export type CallName = keyof typeof CALLS;

/** A platform that runs with or without one of Depute's own implementations, and reports the CPU time of calls. */
export interface Served {
  /** Makes a number of calls, several at a time. Returns the server's CPU time of one call in microseconds. */
  cost(call: CallName, calls: number): Promise<number>;
  close(): void;
}

type Call = () => Promise<unknown>;

const AT_ONCE = 16;
const AUDIENCE = "https://depute.example";
const PROVED = { htm: "POST", htu: `${AUDIENCE}/depute.tasks.v1.TaskService/CreateTask` };
const holder = keypairFromSeed(engine, new Uint8Array(32).fill(7));

type Address = Readonly<Record<"tokens" | "verifier" | "registry" | "tasks", string>>;

/** @param without the name in parts.ts of the part that is left out; absent to keep all parts */
export async function serve(without?: string): Promise<Served> {
  const child = fork(join(import.meta.dirname, "server.ts"), {
    execArgv: ["--import", join(import.meta.dirname, "without.ts"), "--max-semi-space-size=16"],
    env: { ...process.env, ...(without !== undefined && { BENCH_WITHOUT: without }) },
  });
  const [address] = (await once(child, "message")) as [Address];
  const agents = createClient(AgentService, createGrpcJsTransport(address.registry));
  await agents.registerAgent({ requestId: "bench", agent: { id: AGENT, description: "counts words" } });
  const runner = taskRunner({ address: address.tasks });
  const to = (name: keyof Address) => createGrpcJsTransport(address[name]);
  const prepare: Record<Exclude<CallName, "task">, () => Call | Promise<Call>> = {
    GetAgent: () => () => agents.getAgent({ agentId: AGENT }),
    CreateTask: () => creating(to("tasks")),
    VerifyToken: () => verifying(to("tokens")),
    CheckOutput: () => checking(to("verifier")),
  };
  const prepared = new Map<CallName, Call>();
  return {
    async cost(call, count) {
      if (call !== "task" && !prepared.has(call)) prepared.set(call, await prepare[call]());
      const one = prepared.get(call);
      const before = await cpuOf(child);
      if (one === undefined) await runner.run(count, AT_ONCE);
      else await inFlight(count, AT_ONCE, one);
      return ((await cpuOf(child)) - before) / count;
    },
    close() {
      runner.close();
      child.disconnect();
    },
  };
}

function creating(transport: Transport): Call {
  const client = createClient(TaskService, transport);
  const limits = { queue: durationFromMs(3_600_000), total: durationFromMs(7_200_000) };
  const draft = { agentId: AGENT, description: "count words", limits };
  let ids = 0;
  return () => client.createTask({ requestId: `${process.pid} limited ${++ids}`, draft });
}

async function verifying(transport: Transport): Promise<Call> {
  const client = createClient(TokenService, transport);
  const { token } = await client.mintToken({
    requestId: "bench",
    delegatee: holder.principal.id,
    capabilities: [{ namespace: "docs", action: "read", resource: "/project/**" }],
    contractId: "ct_a1b2c3d4e5f6",
    maxChainDepth: 8,
    maxBudgetMicrocents: 1_000_000n,
  });
  const parsed = parseToken(token?.token ?? "");
  if (!parsed.ok) throw new Error(parsed.denial.type);
  return async () => {
    // Each call has a token of its own, because the service does not read a token again that it has verified.
    const narrowed = attenuateToken(engine, parsed.token, { delegatee: holder.principal.id }, holder);
    const text = serialiseToken(narrowed).token;
    const { result } = await client.verifyToken({
      token: { token: text, format: "delegateos-sjt-v1" },
      proof: {
        jwt: createProof(engine, holder, { ...PROVED, token: text }),
        method: PROVED.htm,
        target: PROVED.htu,
      },
      requested: { namespace: "docs", action: "read", resource: "/project/report.txt" },
    });
    if (result.case !== "scope") throw new Error(`denied: ${result.value?.type} ${result.value?.detail}`);
  };
}

async function checking(transport: Transport): Promise<Call> {
  const contract = contractOf(ITEMS, 1_000_000);
  const decoded = decode(TaskContractSchema, contract);
  if (!decoded.ok) throw new Error(decoded.error.message);
  await createClient(ContractService, transport).createContract({ contract: decoded.message });
  const client = createClient(VerificationService, transport);
  const outputJson = JSON.stringify(output4k());
  return async () => {
    const { result } = await client.checkOutput({ contractId: contract.id, outputJson });
    if (result?.passed !== true) throw new Error("it does not pass");
  };
}

async function cpuOf(child: ChildProcess): Promise<number> {
  const answer = once(child, "message") as Promise<[{ cpu: number }]>;
  child.send({});
  return (await answer)[0].cpu;
}
