import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { argumentsDigest, createProof, generateKeypair, type Keypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { Client, type ClientOptions, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { Json, TestPlatform } from "../gateway/platform.ts";

/** A capability in the form in which a token grants it. */
export type Right = readonly [namespace: string, action: string, resource: string];

export interface Grant {
  readonly token: string;
  readonly revocationId: string;
  readonly delegationId: string;
  readonly contractId: string;
  readonly keypair: Keypair;
}

/** Mints a token with the given capabilities; returns the token with its key. */
export async function grant(
  { clients }: Pick<TestPlatform, "clients">,
  rights: readonly Right[],
  budget = 1_000_000,
  keypair = generateKeypair(engine),
): Promise<Grant> {
  const contractId = "ct_a1b2c3d4e5f6";
  const minted = await clients.tokens.mintToken({
    requestId: crypto.randomUUID(),
    delegatee: keypair.principal.id,
    contractId,
    capabilities: rights.map(([namespace, action, resource]) => ({ namespace, action, resource })),
    maxChainDepth: 3,
    maxBudgetMicrocents: BigInt(budget),
    lifetime: durationFromMs(600_000),
  });
  const { delegationId, revocationId } = minted;
  return { token: minted.token?.token ?? "", revocationId, delegationId, contractId, keypair };
}

/**
 * Returns the arguments that a proof covers: those of a tool call, or the parameters of any other request. The
 * members `_meta` and `_delegateos` do not count.
 */
export function provedArguments({ method, params = {} }: Json): unknown {
  if (method === "tools/call") return params.arguments ?? {};
  const { _meta, _delegateos, ...rest } = params;
  return rest;
}

/** Makes a `fetch` that adds a token and a new proof (RFC 9449) to each request. */
export function holderFetch({ token, keypair }: Grant): typeof fetch {
  return (input, init = {}) => {
    const body = typeof init.body === "string" ? JSON.parse(init.body) : undefined;
    const headers = new Headers(init.headers);
    headers.set("authorization", `DPoP ${token}`);
    const claims = { htm: init.method ?? "GET", htu: String(input), token };
    headers.set(
      "dpop",
      createProof(
        engine,
        keypair,
        body === undefined ? claims : { ...claims, arguments: provedArguments(body) },
      ),
    );
    return fetch(input, { ...init, headers });
  };
}

/** Makes the member `_delegateos` for a request with the given arguments. */
export function member({ token, keypair, contractId, delegationId }: Grant, audience: string, args: unknown) {
  const proof = createProof(engine, keypair, { htm: "MCP", htu: audience, token, arguments: args });
  return { dct: token, format: "delegateos-sjt-v1", delegationId, contractId, proof };
}

export const digestOf = (args: unknown) => argumentsDigest(engine, args);

export type Revision = "2026-07-28" | "2025-11-25";

/** Connects the official client over HTTP, for one revision of MCP. */
export async function connect(
  url: string,
  revision: Revision,
  via?: typeof fetch,
  options: ClientOptions = {},
): Promise<Client> {
  const mode = revision === "2026-07-28" ? { pin: revision } : "legacy";
  const client = new Client({ name: "test", version: "1.0.0" }, { ...options, versionNegotiation: { mode } });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(url), via === undefined ? {} : { fetch: via }),
  );
  return client;
}

/** Returns the error of a call, which must be refused. */
export async function refusal(
  call: Promise<unknown>,
): Promise<{ code: number; data: Json; message: string }> {
  try {
    const result = await call;
    throw new Error(`not refused: ${JSON.stringify(result).slice(0, 500)}`);
  } catch (thrown) {
    const { code, data, message } = thrown as { code: number; data: Json; message: string };
    if (typeof code !== "number") throw thrown;
    return { code, data, message };
  }
}

/** Returns the text of a tool's result. */
export function textOf(result: Json): string {
  return result.content.map((part: Json) => part.text ?? "").join("\n");
}
