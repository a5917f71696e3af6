import { type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { durationFromMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { AttenuationSchema } from "@depute/contracts/delegateos/v0/token_pb";
import type { DiscoveredCapability } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { type Task, TaskQuestionKind, TaskSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import { VerifyAttestationResponseSchema } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import {
  CheckOutputResponseSchema,
  type VerificationService,
} from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import {
  CapabilityFullSchema,
  CapabilityRefSchema,
  CapabilitySummarySchema,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { decodeBase64Url, encodeBase64Url, invalid, randomUuid } from "@depute/core";
import { encode } from "@depute/wire";
import type { Clients } from "../../edge/clients.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import type { Arguments } from "./arguments.ts";

/** Maximum time in milliseconds for which a call of a tool may wait before it answers. */
export const MAX_WAIT_MS = 25_000;
/** Maximum number of capabilities in one answer. A longer list would be of no use to a language model. */
export const MAX_FOUND = 100;

/** The services that these tools call. */
export type OwnClients = Clients & { readonly verification: Client<typeof VerificationService> };

/**
 * Waits for the end of a task and sends each of its states to the client. The client's own credentials must have read
 * the task before.
 */
type ReportedWait = (task: Task, waitMs: number) => Promise<Task>;

/**
 * A tool's implementation.
 *
 * @param reported waits on behalf of the tool; absent if the client receives no states
 */
type Method = (
  clients: OwnClients,
  args: Arguments,
  call: WireCall,
  reported?: ReportedWait,
) => Promise<JsonObject>;

/** Finds agents by their capabilities. */
export const discover: Method = async ({ discovery }, args, call) => {
  const filter = {
    ...(args.has("query") ? { query: args.requiredText("query") } : {}),
    ...(args.has("category") ? { category: args.requiredText("category") } : {}),
    ...(args.has("capability") ? { id: args.requiredText("capability") } : {}),
  };
  const { capabilities, nextPageToken } = await discovery.discoverCapabilities(
    {
      level: args.count("level", 1, 2),
      filter,
      agentId: args.text("agent"),
      pageSize: args.count("limit", 20, MAX_FOUND),
      pageToken: args.text("page"),
    },
    call.asCaller,
  );
  return {
    capabilities: capabilities.map(toFound),
    ...(nextPageToken === "" ? {} : { next_page: nextPageToken }),
  };
};

function toFound({ agentId, capability }: DiscoveredCapability): JsonObject {
  const document = (): JsonValue => {
    switch (capability.case) {
      case "reference":
        return encode(CapabilityRefSchema, capability.value);
      case "summary":
        return encode(CapabilitySummarySchema, capability.value);
      case "full":
        return encode(CapabilityFullSchema, capability.value);
      default:
        return {};
    }
  };
  return { agent: agentId, ...(document() as JsonObject) };
}

/** Delegates work to an agent, and returns the task. */
export const delegate: Method = async (clients, args, call, reported) =>
  toView(await createTask(clients, args, call, reported));

/** Creates a task. Waits for its end if the arguments request this. */
export async function createTask(
  { tasks }: OwnClients,
  args: Arguments,
  call: WireCall,
  reported?: ReportedWait,
): Promise<Task | undefined> {
  const input = args.value("input");
  const draft = {
    agentId: args.text("agent"),
    capabilityId: args.text("capability"),
    description: args.text("description"),
    contractId: args.text("contract"),
    workerToken: args.text("worker_token"),
    parentTaskId: args.text("parent_task"),
    ...(input === undefined ? {} : { input }),
  };
  const requestId = args.text("request_id") || randomUuid();
  const waitMs = args.count("wait_ms", 0, MAX_WAIT_MS);
  const wait = durationFromMs(reported === undefined ? waitMs : 0);
  const { task } = await tasks.createTask({ requestId, draft, wait }, call.asCaller);
  return task === undefined || reported === undefined ? task : reported(task, waitMs);
}

/** Reads a task. If requested, waits for the end of the task or for its next events. */
export const watch: Method = async ({ tasks }, args, call, reported) => {
  const after = args.has("after") ? { afterSequence: BigInt(args.count("after", 0)) } : {};
  const waitMs = args.count("wait_ms", 0, MAX_WAIT_MS);
  // A wait for later events ends with the first of them, so it has nothing to report before its answer.
  const report = args.has("after") || waitMs === 0 ? undefined : reported;
  const timeout = durationFromMs(report === undefined ? waitMs : 0);
  const taskId = args.requiredText("task");
  const { task } = await tasks.waitTask({ taskId, timeout, ...after }, call.asCaller);
  return toView(task === undefined || report === undefined ? task : await report(task, waitMs));
};

/** Answers the question of a task that waits for input. */
export const answer: Method = async ({ tasks }, args, call) => {
  const input = args.value("value");
  if (input === undefined) throw invalid("/value", "is required: the answer to the task's question");
  const requestId = args.text("request_id") || randomUuid();
  const { task } = await tasks.provideInput(
    { taskId: args.requiredText("task"), requestId, input },
    call.asCaller,
  );
  return toView(task);
};

/** Cancels a task. */
export const cancel: Method = async ({ tasks }, args, call) => {
  const answer = await tasks.cancelTask(
    { taskId: args.requiredText("task"), reason: args.text("reason") },
    call.asCaller,
  );
  return toView(answer.task);
};

/** Verifies an attestation, or checks an output against a contract. */
export const verify: Method = async ({ attestations, verification }, args, call) => {
  const output = args.value("output");
  if (args.has("attestation")) {
    const subject = { case: "attestationId", value: args.requiredText("attestation") } as const;
    const answer = await attestations.verifyAttestation(
      { subject, ...(output === undefined ? {} : { output }) },
      call.asCaller,
    );
    return toJson(VerifyAttestationResponseSchema, answer) as JsonObject;
  }
  if (output === undefined)
    throw invalid("/output", "is required together with contract, unless attestation is present");
  const answer = await verification.checkOutput(
    { contractId: args.requiredText("contract"), output },
    call.asCaller,
  );
  return toJson(CheckOutputResponseSchema, answer) as JsonObject;
};

/**
 * Attenuates a token for another principal. This takes two calls, because the platform never receives the private key.
 * The first call returns the bytes to sign. The second call contains the signature, and returns the attenuated token.
 */
export const attenuate: Method = async ({ tokens }, args, call) => {
  const token = { token: args.requiredText("token"), format: "delegateos-sjt-v1" };
  const attenuation = {
    attenuator: args.text("attenuator"),
    delegatee: args.requiredText("delegatee"),
    delegationId: args.text("delegation_id"),
    contractId: args.text("contract"),
    ...(args.has("capabilities")
      ? {
          allowedCapabilities: {
            capabilities: args.objects("capabilities", ["namespace", "action", "resource"]),
          },
        }
      : {}),
    ...(args.has("max_budget_microcents")
      ? { maxBudgetMicrocents: BigInt(args.count("max_budget_microcents", 0)) }
      : {}),
    ...(args.has("max_chain_depth") ? { maxChainDepth: BigInt(args.count("max_chain_depth", 0)) } : {}),
    ...(args.has("expires_at") ? { expiresAt: args.requiredText("expires_at") } : {}),
  };
  if (!args.has("signature")) {
    const prepared = await tokens.prepareAttenuation({ token, attenuation }, call.asCaller);
    if (prepared.attenuation === undefined)
      throw new Error("the tokens service answered without a prepared attenuation");
    return {
      sign: encodeBase64Url(prepared.digest),
      attenuation: encode(AttenuationSchema, prepared.attenuation),
    };
  }
  const signature = decodeBase64Url(args.requiredText("signature"));
  if (signature === undefined) throw invalid("/signature", "must be base64url");
  const attenuated = await tokens.attenuateToken({ token, attenuation, signature }, call.asCaller);
  return {
    token: attenuated.token?.token ?? "",
    delegation_id: attenuated.delegationId,
    revocation_id: attenuated.revocationId,
  };
};

/** Returns the name of a task's status in lower case, such as `input_required`. */
export function statusWord({ status }: Task): string {
  const { name = "" } = TaskSchema.field.status.enum?.value[status] ?? {};
  return name.replace("TASK_STATUS_", "").toLowerCase();
}

/** Returns a task in a form for language models. */
export function toView(task: Task | undefined): JsonObject {
  if (task === undefined) throw new Error("the service answered without a task");
  const { id, agentId, capabilityId, output, failure, progress, lastSequence, attestationId, question } =
    task;
  return {
    task: id,
    status: statusWord(task),
    agent: agentId,
    ...(capabilityId === "" ? {} : { capability: capabilityId }),
    ...(progress === undefined
      ? {}
      : { progress: { processed: progress.processed, total: progress.total, message: progress.message } }),
    ...(output?.full === undefined ? {} : { output: toJson(ValueSchema, output.full) }),
    ...(output?.minimal === undefined ? {} : { summary: output.minimal }),
    ...(failure === undefined ? {} : { failure: { reason: failure.reason, message: failure.message } }),
    ...(attestationId === "" ? {} : { attestation: attestationId }),
    ...(question === undefined
      ? {}
      : {
          question: {
            prompt: question.prompt,
            ...(question.details === undefined ? {} : { details: toJson(ValueSchema, question.details) }),
            asks_for: question.kind === TaskQuestionKind.AUTHORIZATION ? "authorization" : "input",
          },
        }),
    after: Number(lastSequence),
  };
}
