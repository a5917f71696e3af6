import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createBus } from "@depute/bus";
import { TrustComponentsSchema } from "@depute/contracts/asp/v0/agent_card_pb";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { TrustService } from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { encodeBase64Url, newId } from "@depute/core";
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
import { MODULE_NAMES, MODULES } from "depute";
import { type Agent, agent, scores } from "./cast.ts";

/**
 * Starts the whole platform in this process, behind its gateway.
 *
 * @param more further settings, as flags
 */
export async function startPlatform(more: readonly string[] = []) {
  const dataDir = mkdtempSync(join(tmpdir(), "depute-asp-"));
  const table = mergeSettings(commonSettings, ...MODULE_NAMES.map((name) => MODULES[name].settings));
  const ports = MODULE_NAMES.flatMap((name) => [`--${name}-port`, "0"]);
  // Raises the limits of messages a minute, because tests send more messages than real agents.
  const rates = ["--asp-message-rates", Array(5).fill("1000000").join(",")];
  const flags = ["--data-dir", dataDir, "--trust-operators", OPERATOR.key, ...rates, ...more];
  const settings = readSettings(table, [...ports, ...flags], { name: "test" }) as CommonSettings;
  const bus = await createBus({
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
  const { close, ...registry } = connect(running.urls.gateway ?? "");
  return {
    ...registry,
    async stop() {
      close();
      await running.stop();
      await bus.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export type Platform = Awaited<ReturnType<typeof startPlatform>>;

/** Connects to a platform with a client that shares no code with it. */
export function connect(url: string) {
  const transport = createGrpcJsTransport(new URL(url).host);
  return {
    url,
    agents: createClient(AgentService, transport),
    trust: createClient(TrustService, transport),
    sessions: createClient(SessionService, transport),
    close: () => transport.close(),
  };
}

type Registry = Pick<Platform, "url" | "agents" | "trust">;

/** The operator. This principal sets the agents' initial scores. */
export const OPERATOR = agent("agent://operator.example/trust/operator", "org_operator");

/** Sets all components of an agent's score to one value; the operator imports it. */
async function vouch({ trust, url }: Registry, agentId: string, score: number): Promise<void> {
  const names = TrustComponentsSchema.fields.map(({ jsonName }) => jsonName);
  const components = Object.fromEntries(names.map((name) => [name, score]));
  const claims = { sub: agentId, aud: url, iat: Math.floor(Date.now() / 1000), components };
  const jwk = { crv: "Ed25519", kty: "OKP", x: OPERATOR.key };
  const part = (value: unknown) => encodeBase64Url(new TextEncoder().encode(JSON.stringify(value)));
  const signed = `${part({ alg: "EdDSA", jwk, typ: "depute-trust+jwt" })}.${part(claims)}`;
  const signature = encodeBase64Url(nativeEngine.sign(new TextEncoder().encode(signed), OPERATOR.seed));
  const kind = { case: "signedImport", value: { statement: `${signed}.${signature}` } } as const;
  await trust.recordEvidence({ evidenceId: newId(), evidence: { agentId, kind } });
}

/** Registers an agent with its ASP card. */
export async function register(platform: Registry, { uri, key }: Agent, score?: number): Promise<void> {
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
  // Messages state scores with one decimal, so the score is rounded here too.
  scores.set(uri, Math.round((overall?.score ?? 0) * 10) / 10);
}
