import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { seal } from "@depute/asp";
import { createBus } from "@depute/bus";
import { MODULE_NAMES, MODULES } from "@depute/cli";
import { TrustComponentsSchema } from "@depute/contracts/asp/v0/agent_card_pb";
import { type Envelope, EnvelopeSchema, type Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { type Session, SessionSchema } from "@depute/contracts/asp/v0/session_pb";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { TrustService } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { encodeBase64Url, newId } from "@depute/core";
import { createProof } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import { createGrpcJsTransport } from "@depute/grpc-js";
import {
  type CommonSettings,
  commonSettings,
  createLogger,
  hostServices,
  mergeSettings,
  readSettings,
} from "@depute/service";
import { decode, decodeValid, encode } from "@depute/wire";

/** The whole platform in this process, behind its gateway. */
export async function startPlatform() {
  const dataDir = mkdtempSync(join(tmpdir(), "depute-asp-"));
  const table = mergeSettings(commonSettings, ...MODULE_NAMES.map((name) => MODULES[name].settings));
  const ports = MODULE_NAMES.flatMap((name) => [`--${name}-port`, "0"]);
  const flags = ["--data-dir", dataDir, "--trust-operators", OPERATOR.key];
  const settings = readSettings(table, [...ports, ...flags], { name: "test" }) as CommonSettings;
  const bus = createBus({
    onError: (error) => {
      throw error;
    },
  });
  const running = await hostServices({
    modules: MODULE_NAMES.map((name) => ({ module: MODULES[name], settings, listen: name === "gateway" })),
    common: settings,
    bus,
    log: createLogger({ level: process.env.DEPUTE_TEST_LOG ?? "silent", name: "test" }),
  });
  const url = running.urls.gateway ?? "";
  // A foreign client: it shares no code with what it calls.
  const transport = createGrpcJsTransport(new URL(url).host);
  return {
    url,
    agents: createClient(AgentService, transport),
    trust: createClient(TrustService, transport),
    sessions: createClient(SessionService, transport),
    async stop() {
      transport.close();
      await running.stop();
      await bus.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export type Platform = Awaited<ReturnType<typeof startPlatform>>;

/** An agent with its key, whose signatures nobody else can make. */
export interface Agent {
  readonly uri: string;
  readonly orgId: string;
  readonly seed: Uint8Array;
  readonly key: string;
}

export function agent(uri: string, orgId: string): Agent {
  const seed = nativeEngine.sha256(new TextEncoder().encode(`fixture ${uri}`));
  return { uri, orgId, seed, key: encodeBase64Url(nativeEngine.publicKey(seed)) };
}

export const ALPHA = agent("agent://acme.com/procurement/alpha-buyer", "org_acme");
export const BETA = agent("agent://softwarecorp.io/sales/beta-vendor", "org_softwarecorp");
export const GAMMA = agent("agent://verifyco.com/compliance/gamma-auditor", "org_verifyco");

/** Who vouches for the scores that agents bring along. */
const OPERATOR = agent("agent://operator.example/trust/operator", "org_operator");

/** Sets all that a score is made of to one value, as an operator says. */
async function vouch({ trust, url }: Platform, agentId: string, score: number): Promise<void> {
  const names = TrustComponentsSchema.fields.map(({ jsonName }) => jsonName);
  const components = Object.fromEntries(names.map((name) => [name, score]));
  const claims = { sub: agentId, aud: url, iat: Math.floor(Date.now() / 1000), components };
  const jwk = { crv: "Ed25519", kty: "OKP", x: OPERATOR.key };
  const part = (value: unknown) => encodeBase64Url(new TextEncoder().encode(JSON.stringify(value)));
  const signed = `${part({ alg: "EdDSA", jwk, typ: "depute-trust+jwt" })}.${part(claims)}`;
  const signature = encodeBase64Url(nativeEngine.sign(new TextEncoder().encode(signed), OPERATOR.seed));
  const kind = { case: "import", value: { statement: `${signed}.${signature}` } } as const;
  await trust.recordEvidence({ evidenceId: newId(), evidence: { agentId, kind } });
}

/** Registers an agent with its ASP card. */
export async function register(platform: Platform, { uri, key }: Agent, score?: number): Promise<void> {
  const { agents, trust } = platform;
  const id = uri.slice(uri.lastIndexOf("/") + 1);
  await agents.registerAgent({
    requestId: newId(),
    agent: {
      id,
      version: "1.0.0",
      principal: key,
      card: {
        agentId: uri,
        name: id,
        capabilities: { values: ["provision.software"] },
        signingPublicKey: { kty: "OKP", crv: "Ed25519", x: key },
      },
    },
  });
  if (score !== undefined) await vouch(platform, id, score);
  const { overall } = await trust.getTrust({ agentId: id });
  // Messages state a score with one decimal.
  scores.set(uri, Math.round((overall?.score ?? 0) * 10) / 10);
}

/** What the registry says of each agent before it comes. */
const scores = new Map<string, number>();

/** One way to reach sessions: HTTP or gRPC. */
export interface Wire {
  open(invitation: Envelope): Promise<Session>;
  append(envelope: Envelope): Promise<{ ordinal: number }>;
  get(sessionId: string): Promise<Session>;
}

export function overGrpc(sessions: Client<typeof SessionService>): Wire {
  const whole = (session: Session | undefined): Session => {
    if (session === undefined) throw new Error("the answer has no session");
    return session;
  };
  return {
    open: async (invitation) => whole((await sessions.createSession({ invitation })).session),
    append: (envelope) => sessions.appendMessage({ envelope }),
    get: async (sessionId) => whole((await sessions.getSession({ sessionId })).session),
  };
}

/** A proof that a key is at hand, for a call of the session service, on whatever wire. */
export function proof({ seed, key }: Pick<Agent, "seed" | "key">, method: string): string {
  const claims = { htm: "POST", htu: `/${SessionService.typeName}/${method}` };
  return createProof(nativeEngine, { principal: { id: key }, privateKey: seed }, claims);
}

/** A signed message, in its place after what the session has. */
export function write(
  { uri, orgId, seed, key }: Agent,
  performative: keyof typeof Performative,
  body: JsonObject,
  session: Session | { sessionId: string },
  recipient?: string,
  dpopProof?: string,
): Envelope {
  const known = "participants" in session ? session : undefined;
  const me = known?.participants.find(({ agentId }) => agentId === uri);
  const document: JsonValue = {
    version: "asp/0.1",
    messageId: newId(),
    sessionId: session.sessionId,
    sequenceNumber: Number(me?.nextSequenceNumber ?? 0n),
    timestamp: new Date().toISOString(),
    sender: {
      agentId: uri,
      orgId,
      trustScore: me?.trustScore ?? scores.get(uri) ?? 0,
      dpopProof: dpopProof ?? proof({ seed, key }, known === undefined ? "CreateSession" : "AppendMessage"),
    },
    ...(recipient === undefined ? {} : { recipient }),
    performative,
    content: { mimeType: "application/asp+json", body },
    integrity: {
      hash: `sha256:${"0".repeat(64)}`,
      previousHash: known?.lastHash ?? `sha256:${"0".repeat(64)}`,
      signature: `ed25519:${"0".repeat(128)}`,
    },
  };
  const decoded = decode(EnvelopeSchema, document);
  if (!decoded.ok) throw new Error(`${decoded.error.path}: ${decoded.error.message}`);
  return seal(nativeEngine, create(EnvelopeSchema, decoded.message), seed);
}

/** A document of an answer; throws the error that is answered instead. */
export async function documentOf(response: Response): Promise<JsonObject> {
  const body = (await response.json()) as JsonObject;
  if (response.ok) return body;
  throw new HttpRefusal(response.status, body.error as JsonObject);
}

export class HttpRefusal extends Error {
  readonly status: number;
  readonly error: JsonObject;

  constructor(status: number, error: JsonObject) {
    super(JSON.stringify(error));
    this.status = status;
    this.error = error;
  }
}

/** Plain HTTP, with nothing of ours but the documents' form. */
export function overHttp(url: string): Wire {
  const post = async (path: string, envelope: Envelope) =>
    documentOf(
      await fetch(`${url}/v1/asp${path}`, {
        method: "POST",
        headers: { "content-type": "application/asp+json" },
        body: JSON.stringify(encode(EnvelopeSchema, envelope)),
      }),
    );
  const session = (document: JsonObject): Session => {
    const decoded = decodeValid(SessionSchema, document);
    if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
    return decoded.message;
  };
  return {
    open: async (invitation) => session(await post("/sessions", invitation)),
    append: async (envelope) => {
      const { ordinal } = await post(`/sessions/${envelope.sessionId}/messages`, envelope);
      return { ordinal: Number(ordinal) };
    },
    get: async (sessionId) => session(await documentOf(await fetch(`${url}/v1/asp/sessions/${sessionId}`))),
  };
}
