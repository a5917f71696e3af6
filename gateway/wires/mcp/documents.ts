import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { OwnTool } from "@depute/mcp";
import type { WireCall } from "../../edge/wire-call.ts";
import type { WireDeps } from "../../edge/wire-deps.ts";
import { Arguments } from "./arguments.ts";
import { toMcpTask } from "./mcp-task.ts";
import {
  answer,
  attenuate,
  cancel,
  createTask,
  delegate,
  discover,
  MAX_FOUND,
  MAX_WAIT_MS,
  type OwnClients,
  verify,
  watch,
} from "./methods.ts";
import { reportedWait } from "./reported-wait.ts";

/** A description of the platform for language models. */
export const INSTRUCTIONS =
  "Depute delegates work to other agents. discover finds agents and their capabilities; delegate creates a task and returns it; " +
  "watch waits for the task; answer answers its question; cancel cancels it; verify checks a result; attenuate attenuates a token for your delegate.";

const text = (description: string) => ({ type: "string", description });
const count = (description: string, maximum?: number) => ({
  type: "integer",
  minimum: 0,
  ...(maximum === undefined ? {} : { maximum }),
  description,
});
const waitMs = count("milliseconds to wait for the end of the task; 0 answers immediately", MAX_WAIT_MS);

/** Returns the tools that Depute itself offers. */
export function ownTools(clients: OwnClients, { clock, timers }: WireDeps): OwnTool<WireCall>[] {
  const { tasks } = clients;
  return DOCUMENTS.map(({ properties, required, method, ...tool }) => {
    const read = (args: Readonly<Record<string, unknown>>) => new Arguments(args, Object.keys(properties));
    return {
      ...tool,
      inputSchema: { type: "object", properties, required: [...required], additionalProperties: false },
      run: async (args, call, notices) => {
        const reported = (task: Task, waitMs: number) =>
          reportedWait({ tasks, clock, timers }, task, waitMs, call, notices);
        return method(clients, read(args), call, notices.areWanted ? reported : undefined);
      },
      // Only `delegate` creates an MCP task. All other tools answer immediately or after a limited wait.
      ...(method === delegate && {
        begin: async (args, call) => {
          const task = await createTask(clients, read(args), call);
          if (task === undefined) throw new Error("CreateTask answered without a task");
          return toMcpTask(task);
        },
      }),
    };
  });
}

const DOCUMENTS = [
  {
    name: "discover",
    description: "Finds agents by their capabilities. Without arguments it lists all.",
    isReadOnly: true,
    properties: {
      query: text("words that describe the work"),
      category: text("category of the capability"),
      capability: text("id of a capability"),
      agent: text("id of an agent"),
      level: count("0: names; 1: descriptions and costs; 2: schemas and examples too", 2),
      limit: count("maximum number of results; 20 by default", MAX_FOUND),
      page: text("next_page of the previous answer"),
    },
    required: [],
    method: discover,
  },
  {
    name: "delegate",
    description:
      "Delegates work to an agent: either a capability with an input that fits its schema, or an agent with a description. " +
      "Returns the task.",
    isReadOnly: false,
    properties: {
      agent: text("id of the agent; not required if only one agent offers the capability"),
      capability: text("id of the capability"),
      description: text("the work to do; only if no capability is named"),
      input: { description: "input of the work" },
      contract: text("id of the contract that the result must satisfy"),
      worker_token: text("token that is attenuated for the agent, with which the agent acts"),
      parent_task: text("id of the parent task"),
      request_id: text("a repeated call with the same id returns the same task"),
      wait_ms: waitMs,
    },
    required: [],
    method: delegate,
  },
  {
    name: "watch",
    description: "Reads a task's state. Waits for the task's end or, with `after`, for any later event.",
    isReadOnly: true,
    properties: {
      task: text("id of the task"),
      after: count("`after` of the previous answer: waits for later events"),
      wait_ms: waitMs,
    },
    required: ["task"],
    method: watch,
  },
  {
    name: "answer",
    description: "Answers the question of a task whose status is input_required.",
    isReadOnly: false,
    properties: {
      task: text("id of the task"),
      value: {
        description: "the answer: a text, or a value in the form that the question's details describe",
      },
      request_id: text("a repeated call with the same id has no further effect"),
    },
    required: ["task", "value"],
    method: answer,
  },
  {
    name: "cancel",
    description: "Cancels a task and all tasks that were delegated for it.",
    isReadOnly: false,
    properties: { task: text("id of the task"), reason: text("the reason, for the worker") },
    required: ["task"],
    method: cancel,
  },
  {
    name: "verify",
    description: "Verifies an attestation, or checks an output against a contract.",
    isReadOnly: true,
    properties: {
      attestation: text("id of the attestation, att_..."),
      contract: text("id of the contract, ct_...; only if no attestation is named"),
      output: { description: "the output to check" },
    },
    required: [],
    method: verify,
  },
  {
    name: "attenuate",
    description:
      "Attenuates a token for another principal. Without a signature, it returns the bytes to sign (Ed25519 over the 32 bytes of " +
      "`sign`) and the attenuation to send again. With the signature, it returns the new token.",
    isReadOnly: false,
    properties: {
      token: text("the token"),
      delegatee: text("public key of the new holder, base64url"),
      attenuator: text("public key of the token's current holder, who signs"),
      delegation_id: text("id of the new delegation, from the first answer"),
      contract: text("id of the contract, from the first answer"),
      capabilities: {
        type: "array",
        description: "the grants that remain; if absent, all remain",
        items: {
          type: "object",
          properties: {
            namespace: text("e.g. docs"),
            action: text("e.g. read"),
            resource: text("e.g. /project/**"),
          },
          required: ["namespace", "action", "resource"],
          additionalProperties: false,
        },
      },
      max_budget_microcents: count("maximum amount that may be spent under the token; 1 USD is 100,000,000"),
      max_chain_depth: count("maximum depth of the chain, in delegations"),
      expires_at: text("time at which the token expires, RFC 3339 UTC"),
      signature: text("the signature, base64url"),
    },
    required: ["token", "delegatee"],
    method: attenuate,
  },
];
