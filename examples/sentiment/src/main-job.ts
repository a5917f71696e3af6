import { fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { connectTo, type DeputeClients, holderInterceptor } from "@depute/client";
import type { TaskContract } from "@depute/contracts/delegateos/v0/contract_pb";
import type { TaskCompleted, TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { AttestationStep } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { delegateOverA2a } from "./a2a.ts";
import { agree } from "./agreement.ts";
import { type Granted, mintFor, narrowFor, takeBack } from "./authority.ts";
import { bar, type Screen } from "./draw.ts";
import { delegateOverNekte } from "./nekte.ts";
import { collectTexts } from "./texts.ts";

const COUNT = 500;

/** The agent that does the work. */
export interface Delegate {
  agentId: string;
  principal: string;
}

/** The results of the main job, for further checks by a test. */
export interface MainJobOutcome {
  output: JsonValue;
  verified: boolean;
  attested: boolean;
  /** The error of the call that follows the revocation. */
  refusal: string;
  /** The data of NEKTE's `complete` event. */
  nekte: Record<string, unknown>;
  /** The result of the A2A task. */
  a2a: unknown;
}

/** One agent delegates work to another under a scoped token, and gets a checked and signed result. */
export async function runMainJob(url: string, worker: Delegate, screen: Screen): Promise<MainJobOutcome> {
  const delegator = generateKeypair(engine);
  const texts = collectTexts(COUNT);
  const open = connectTo(url);

  screen.say(`1. The delegator (${short(delegator.principal.id)}) signs a contract.`);
  const contract = agree(engine, delegator, COUNT);
  await open.contracts.createContract({ contract });
  screen.say(`   ${contract.id}: ${contract.task?.title}, at most 1,000,000 microcents`);

  screen.say("2. A token is minted for the delegator, and narrowed for the worker.");
  const granted = await mintFor(open, delegator.principal.id, worker.agentId, contract.id);
  const narrowed = await narrowFor(open, engine, delegator, worker.principal, granted);
  screen.say(`   the worker (${short(worker.principal)}) may llm:classify texts/readme/**, nothing else`);

  screen.say("3. The delegator hands the work over and watches.");
  const token = granted.token.token;
  const holderClients = connectTo(url, [
    holderInterceptor({ engine, keypair: delegator, publicUrl: url, token }),
  ]);
  const job = { clients: holderClients, worker, contract, narrowed, texts };
  const completed = await delegate(job, screen);
  const output = completed.output?.full === undefined ? null : toJson(ValueSchema, completed.output.full);
  const { verification } = completed;
  screen.say(`   result: ${JSON.stringify(output)}`);
  screen.say(
    `   checked against the contract: ${verification?.passed ? "passed" : "NOT passed"} (${verification?.method})`,
  );

  screen.say("4. The worker's signed attestation is verified.");
  const { valid, findings } = await open.attestations.verifyAttestation({
    subject: { case: "attestationId", value: completed.attestationId },
  });
  for (const { step, passed, details } of findings) {
    const name = Object.entries(AttestationStep).find(([, number]) => number === step)?.[0] ?? "";
    screen.say(`   ${passed ? "ok  " : "FAIL"} ${name.toLowerCase()} ${details}`);
  }

  screen.say("5. The token is taken back, and the same call is made again.");
  const sequence = await takeBack(open, engine, delegator, granted);
  const refusal = await delegate(job, screen).then(
    () => "it was allowed!",
    (error: unknown) => ConnectError.from(error).rawMessage,
  );
  screen.say(`   revocation ${sequence}; refused: ${refusal}`);

  screen.say("6. The same work again over NEKTE: JSON-RPC and SSE with plain fetch.");
  const nekte = await delegateOverNekte(url, worker.agentId, texts, screen);

  screen.say("7. The same work over A2A, with A2A's official client.");
  const a2a = await delegateOverA2a(url, worker.agentId, texts, screen);
  return { output, verified: verification?.passed === true, attested: valid, refusal, nekte, a2a };
}

interface Job {
  clients: DeputeClients;
  worker: Delegate;
  contract: TaskContract;
  narrowed: Granted;
  texts: readonly string[];
}

async function delegate(job: Job, screen: Screen): Promise<TaskCompleted> {
  const stream = job.clients.tasks.delegateTask({
    requestId: crypto.randomUUID(),
    draft: {
      agentId: job.worker.agentId,
      capabilityId: "sentiment",
      description: `Sentiment of ${job.texts.length} texts`,
      input: fromJson(ValueSchema, { texts: [...job.texts] }),
      contractId: job.contract.id,
      workerToken: job.narrowed.token.token,
    },
  });
  let end: TaskEvent["payload"] | undefined;
  // The loop ends on its own, because the stream closes after the terminal event.
  for await (const { taskEvent: event } of stream) {
    const payload = event?.payload;
    switch (payload?.case) {
      case "progress":
        screen.show(bar(payload.value.processed, payload.value.total, payload.value.message));
        break;
      case "partial":
        screen.say("   a preliminary result came in");
        break;
      case "completed":
        screen.say("   completed");
        end = payload;
        break;
      default:
        end = payload;
    }
  }
  if (end?.case === "completed") return end.value;
  throw new Error(`the task ended otherwise: ${JSON.stringify(end?.value)}`);
}

function short(principal: string): string {
  return `${principal.slice(0, 8)}...`;
}
