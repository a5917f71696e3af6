import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { encodeBase64Url } from "@depute/core";
import { nativeEngine } from "@depute/dct/native";
import { startPlatform } from "../gateway/platform.ts";

/** Reads an example document of the specification, unchanged. */
export function example(name: string): JsonObject {
  return JSON.parse(
    readFileSync(new URL(`../../packages/wire/fixtures/cap/${name}.json`, import.meta.url), "utf8"),
  );
}

/**
 * The agents of the specification's example, and `stranger-1`, which does not occur in it. `secretOf` is their
 * secret.
 */
export const AGENTS = ["pm-1", "analyst-1", "qa-1", "stranger-1"] as const;
export const ROLES = ["user", "orchestrator"] as const;

/** Returns an agent's key. The key never signs, because each agent has a secret. */
export function keyOf(id: string): string {
  return encodeBase64Url(
    nativeEngine.publicKey(nativeEngine.sha256(new TextEncoder().encode(`fixture ${id}`))),
  );
}

/**
 * Starts the platform for the specification's example. Each participant has its own credentials; other callers are
 * refused.
 */
export async function startCast(args: readonly string[] = [], start: typeof startPlatform = startPlatform) {
  const folder = mkdtempSync(join(tmpdir(), "depute-cap-"));
  const file = join(folder, "credentials.json");
  const owners = [
    ...AGENTS.map((id) => [keyOf(id), id] as const),
    ...ROLES.map((role) => [`the-${role}`, role] as const),
    ["an-operator", "operator"] as const,
  ];
  const sha256 = (secret: string) => createHash("sha256").update(secret).digest("hex");
  writeFileSync(
    file,
    JSON.stringify(owners.map(([principal, id]) => ({ principal, sha256: sha256(secretOf(id)) }))),
  );
  const platform = await start([
    "--auth",
    "required",
    "--credentials-file",
    file,
    "--user-principals",
    "the-user",
    "--orchestrator-principals",
    "the-orchestrator",
    ...args,
  ]);
  const cast = {
    platform,
    url: platform.url,
    as: (id: string) => playerAt(platform.url, id),
    async stop() {
      await platform.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  for (const id of AGENTS) await cast.as(id).register(manifestOf(id));
  return cast;
}

export type Cast = Awaited<ReturnType<typeof startCast>>;

export function secretOf(id: string): string {
  return `secret of ${id.replace(/:.*/, "")}`.replaceAll(" ", "-");
}

function manifestOf(id: string): JsonObject {
  if (id !== "stranger-1") return example(`manifest-${id}`);
  return { id, system_prompt: "", allowed_agents: [], delegate_rules: {}, overseer: null, mcp_bindings: [] };
}

// biome-ignore lint/suspicious/noExplicitAny: an answer is looked at member by member
export type Json = any;

/** An HTTP response. */
export interface Answer {
  readonly status: number;
  readonly body: Json;
}

/** Makes a participant that uses only HTTP and its own credentials. */
export function playerAt(url: string, id: string) {
  const authorization = `Bearer ${secretOf(id)}`;
  const ask = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        authorization,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json") === true;
    return { status: response.status, body: isJson ? (JSON.parse(text) as Json) : text };
  };
  return {
    id,
    ask,
    register: async (manifest: JsonObject, as = String(manifest.id)) => {
      const answer = await ask("PUT", `/cap/agents/${as}`, manifest);
      if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
      return answer;
    },
    send: (message: JsonObject | string, key?: string): Promise<Answer> =>
      ask("POST", "/cap/messages", message, key === undefined ? {} : { "idempotency-key": key }),
    inbox: async (query = ""): Promise<Json> => (await ask("GET", `/cap/inbox/${id}${query}`)).body,
    acknowledge: (upTo: number) => ask("POST", `/cap/inbox/${id}/acknowledgements`, { up_to: upTo }),
    lineage: async (taskId: string): Promise<Json> => (await ask("GET", `/cap/tasks/${taskId}`)).body,
  };
}

export type Player = ReturnType<typeof playerAt>;
