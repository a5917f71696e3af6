import type { OwnTool } from "@depute/mcp";
import type { WireCall } from "../../src/wire-call.ts";
import { Arguments } from "./arguments.ts";
import {
  attenuate,
  cancel,
  delegate,
  discover,
  MAX_FOUND,
  MAX_WAIT_MS,
  type OwnClients,
  verify,
  watch,
} from "./methods.ts";

/** What a model is told of the platform as a whole. */
export const INSTRUCTIONS =
  "Depute hands work to other agents. discover finds who offers what; delegate hands work over and answers with a task; " +
  "watch waits for it; cancel ends it; verify checks a result; attenuate narrows a token for whom you delegate to.";

const text = (description: string) => ({ type: "string", description });
const count = (description: string, maximum?: number) => ({
  type: "integer",
  minimum: 0,
  ...(maximum === undefined ? {} : { maximum }),
  description,
});
const waitMs = count("milliseconds to wait for the end before answering; 0 answers at once", MAX_WAIT_MS);

/** Depute's own tools. */
export function ownTools(clients: OwnClients): OwnTool<WireCall>[] {
  return DOCUMENTS.map(({ properties, required, method, ...tool }) => ({
    ...tool,
    inputSchema: { type: "object", properties, required: [...required], additionalProperties: false },
    run: async (args, call) => method(clients, new Arguments(args, Object.keys(properties)), call),
  }));
}

const DOCUMENTS = [
  {
    name: "discover",
    description: "Finds agents by what they can do. Without arguments it lists everything.",
    isReadOnly: true,
    properties: {
      query: text("words of what is to be done"),
      category: text("category of the capability"),
      capability: text("id of a capability"),
      agent: text("id of an agent"),
      level: count("0: names; 1: descriptions and costs; 2: schemas and examples too", 2),
      limit: count("the most to be answered, 20 unless told otherwise", MAX_FOUND),
      page: text("next_page of the answer before"),
    },
    required: [],
    method: discover,
  },
  {
    name: "delegate",
    description:
      "Hands work to an agent: either a capability with an input that fits its schema, or an agent with a description. " +
      "Answers with the task.",
    isReadOnly: false,
    properties: {
      agent: text("id of the agent; may be left out where only one offers the capability"),
      capability: text("id of the capability"),
      description: text("what is to be done, for work without a capability"),
      input: { description: "input of the work" },
      contract: text("id of the contract that the result has to keep"),
      worker_token: text("token that lets the agent act, narrowed for it"),
      parent_task: text("task that this is a part of"),
      request_id: text("the same id again gives the same task rather than a second one"),
      wait_ms: waitMs,
    },
    required: [],
    method: delegate,
  },
  {
    name: "watch",
    description: "Says how a task stands; waits for its end, or with `after` for any news of it.",
    isReadOnly: true,
    properties: {
      task: text("id of the task"),
      after: count("`after` of the answer before: waits for what came later"),
      wait_ms: waitMs,
    },
    required: ["task"],
    method: watch,
  },
  {
    name: "cancel",
    description: "Ends a task and everything that was delegated for it.",
    isReadOnly: false,
    properties: { task: text("id of the task"), reason: text("why, for whoever works at it") },
    required: ["task"],
    method: cancel,
  },
  {
    name: "verify",
    description: "Verifies an attestation, or checks an output against a contract.",
    isReadOnly: true,
    properties: {
      attestation: text("id of the attestation, att_..."),
      contract: text("id of the contract, ct_..., where there is no attestation"),
      output: { description: "the output" },
    },
    required: [],
    method: verify,
  },
  {
    name: "attenuate",
    description:
      "Narrows a token for another principal. Without a signature it answers what to sign (Ed25519 over the 32 bytes of " +
      "`sign`) and the block as it has to be sent again; with the signature it answers the new token.",
    isReadOnly: false,
    properties: {
      token: text("the token"),
      delegatee: text("public key of whom it is for, base64url"),
      attenuator: text("public key of who narrows it; the token's holder"),
      delegation_id: text("id of the new delegation, as the first answer gave it"),
      contract: text("id of the contract, as the first answer gave it"),
      capabilities: {
        type: "array",
        description: "what it still grants; everything where it is left out",
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
      max_budget_microcents: count("what may be spent under it; 1 USD is 100,000,000"),
      max_chain_depth: count("how often it may be handed on"),
      expires_at: text("when it ends, RFC 3339 UTC"),
      signature: text("the signature, base64url"),
    },
    required: ["token", "delegatee"],
    method: attenuate,
  },
];
