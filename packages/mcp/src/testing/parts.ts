import { create } from "@bufbuild/protobuf";
import {
  AuthorizedScopeSchema,
  DenialReasonSchema,
  DenialType,
} from "@depute/contracts/delegateos/v0/delegation_pb";
import { type Clock, DeputeError, ErrorReason, systemClock, systemTimers } from "@depute/core";
import { compileSchema } from "@depute/wire/json-schema";
import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
import { Server } from "@modelcontextprotocol/server";
import type { Authoriser, Grants, Payer, Presented } from "../authoriser.ts";
import { downstream } from "../downstream.ts";
import type { ObservedCall } from "../observed-call.ts";
import { once, type Presentation } from "../presentation.ts";
import { McpProxy } from "../proxy.ts";
import { readConfig, type UpstreamConfig } from "../rules/read-config.ts";
import { Refusal } from "../rules/refusal.ts";
import type { Right } from "../rules/visible.ts";
import type { Seal } from "../task-handles.ts";
import { Upstream } from "../upstream.ts";

/** A fake tokens service. A token is the list of the resources that it grants, separated by underscores. */
export class FakeAuthoriser implements Authoriser {
  readonly verified: { presented: Presented; right: Right | undefined; digest: string }[] = [];
  readonly settled: string[] = [];
  budget = Number.MAX_SAFE_INTEGER;
  bound = true;
  principal = "holder";
  #reserved = 0;

  async verify(presented: Presented, rights: readonly Right[], digest: string) {
    this.verified.push({ presented, right: rights[0], digest });
    const granted = presented.token.split("_");
    if (presented.proof === undefined)
      return { ok: false, denial: denial(DenialType.PROOF_REQUIRED) } as const;
    if (!rights.every(({ resource }) => granted.includes(resource)))
      return { ok: false, denial: denial(DenialType.CAPABILITY_NOT_GRANTED) } as const;
    const scope = create(AuthorizedScopeSchema, {});
    return { ok: true, principal: this.principal, scope, blocks: [] } as const;
  }

  async reserve(_payer: Payer, microcents: number) {
    if (this.budget < microcents) return { ok: false, denial: denial(DenialType.BUDGET_EXCEEDED) } as const;
    this.budget -= microcents;
    const reservationId = `${++this.#reserved}:${microcents}`;
    return { ok: true, reservationId, remainingMicrocents: this.budget } as const;
  }

  async commit(reservationId: string, microcents: number | undefined) {
    const charged = microcents ?? Number(reservationId.split(":")[1]);
    this.settled.push(`${reservationId} commits ${charged}`);
    return charged;
  }

  async release(reservationId: string) {
    this.settled.push(`${reservationId} is released`);
  }

  async grants(token: string): Promise<Grants> {
    const capabilities = token
      .split("_")
      .map((resource) => ({ namespace: "data", action: "query", resource }));
    return { ok: true, capabilities, holder: this.principal };
  }

  async mayUse() {
    return this.bound;
  }
}

/** Stores values in memory instead of encrypting them. It opens only values that it has sealed itself. */
export class FakeSeal implements Seal {
  readonly #sealed = new Map<string, Uint8Array>();

  seal(secret: Uint8Array, context: Readonly<Record<string, string>>) {
    const id = crypto.randomUUID();
    this.#sealed.set(JSON.stringify([id, context]), secret);
    return id;
  }

  open(sealed: string, context: Readonly<Record<string, string>>) {
    return this.#sealed.get(JSON.stringify([sealed, context]));
  }
}

function denial(type: DenialType) {
  return create(DenialReasonSchema, { type });
}

type Answer = (params: Record<string, unknown>, server: Server) => Promise<unknown> | unknown;

/** JSON whose members tests read without declaring types. */
// biome-ignore lint/suspicious/noExplicitAny: an answer is looked at member by member
export type Json = any;

/** Creates a tool with this name that accepts any arguments. */
export const tool = (name: string, description = "does it") => ({
  name,
  description,
  inputSchema: { type: "object" },
});

/** Creates a proxy in front of an SDK server in this process. The server returns the given responses. */
export function bench(
  answers: Readonly<Record<string, Answer>>,
  upstream: object = {},
  clock: Clock = systemClock,
) {
  const { upstreams } = readConfig({ upstreams: { bench: { map: MAP, ...upstream } } }, new Map());
  const config = upstreams.get("bench") as UpstreamConfig;
  const authoriser = new FakeAuthoriser();
  const received: { method: string; params: Json }[] = [];
  const servers: Server[] = [];
  const connection = new Upstream({
    clock: systemClock,
    timers: systemTimers,
    config: { ...config, revision: "legacy" },
    address: { kind: "http", url: "http://127.0.0.1:9", headers: {} },
    transport: () => {
      const [near, far] = InMemoryTransport.createLinkedPair();
      const server = new Server(
        { name: "bench", version: "1.0.0" },
        { capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} } },
      );
      server.fallbackRequestHandler = async ({ method, params = {} }) => {
        received.push({ method, params });
        const answer = answers[method];
        if (answer === undefined) throw new Error(`the server does not answer ${method}`);
        return (await answer(params, server)) as Record<string, unknown>;
      };
      servers.push(server);
      void server.connect(far);
      return near;
    },
  });
  const faults: unknown[] = [];
  const checkedSchemas: unknown[] = [];
  const observed: ObservedCall[] = [];
  const proxy = new McpProxy({
    config,
    upstream: connection,
    authoriser,
    schemaCheck: {
      async violations(schema, value) {
        checkedSchemas.push(schema);
        try {
          return compileSchema(schema, "2020-12", "plain")(value);
        } catch (thrown) {
          throw new DeputeError(ErrorReason.SCHEMA_INVALID, (thrown as Error).message);
        }
      },
    },
    clock,
    timers: systemTimers,
    seal: new FakeSeal(),
    onCall: (call) => observed.push(call),
    audience: () => "mcp:bench",
    onFault: (_what, thrown) => faults.push(thrown),
  });
  return {
    proxy,
    authoriser,
    received,
    servers,
    faults,
    /** The schemas that the proxy passed to its `schemaCheck`. */
    checkedSchemas,
    observed,
    /** Calls a tool. The default token grants the resource `one`. */
    call: (name: string, args: unknown = {}, presented: Presentation = token("one")) =>
      proxy.handle({ method: "tools/call", params: { name, arguments: args }, presentation: presented }),
    /** Connects an SDK client to the proxy. */
    async client(presentation?: Presentation) {
      const [near, far] = InMemoryTransport.createLinkedPair();
      const server = await downstream({
        proxy,
        era: "legacy",
        onError: () => {},
        presentation: () => presentation,
      });
      await server.connect(far);
      const client = new Client({ name: "test", version: "1.0.0" });
      await client.connect(near);
      return client;
    },
  };
}

/** Creates a token that grants these resources, with a proof for one call. */
export const token = (...resources: string[]) =>
  once(resources.join("_"), "", { jwt: "proof", method: "MCP", target: "mcp:bench" });

/** A tool map. The tools need the resource `one`, or the resource in their argument `of`. */
const MAP = {
  tools: {
    fixed: { namespace: "data", action: "query", resource: "one" },
    paid: { namespace: "data", action: "query", resource: "one", cost: 100 },
    metered: {
      namespace: "data",
      action: "query",
      resource: "one",
      cost: { most: 100, reported: "/_meta/cost" },
    },
    named: { namespace: "data", action: "query", resource: { argument: "/of" } },
  },
  methods: {
    "resources/read": { namespace: "data", action: "query", resource: { argument: "/uri", form: "uri" } },
    "prompts/get": { namespace: "data", action: "query", resource: { argument: "/name" } },
    "completion/complete": { namespace: "data", action: "query", resource: { argument: "/ref/name" } },
  },
};

/** The response of every test server to `tools/list`. */
export const LIST = {
  "tools/list": () => ({
    tools: ["fixed", "paid", "metered", "named", "unmapped"].map((name) => tool(name)),
  }),
};

/** Creates the response of a tool. */
export const text = (text: string) => ({ content: [{ type: "text", text }] });

/** Waits until a call rejects with a Refusal, and returns the Refusal. */
export async function refusal(call: Promise<unknown>): Promise<Refusal & { data: Json }> {
  const outcome = await call.then(
    (result) => new Error(`not refused: ${JSON.stringify(result)}`),
    (thrown: unknown) => thrown,
  );
  if (outcome instanceof Refusal) return outcome;
  throw outcome;
}
