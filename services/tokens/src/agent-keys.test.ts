import type { ReplacePrincipalRequest } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { KeyService } from "@depute/contracts/depute/tokens/v1/key_service_pb";
import { DeputeError, decodeBase64Url, ErrorReason } from "@depute/core";
import { parsePrincipal } from "@depute/dct";
import { defineService } from "@depute/service";
import { startTestHost, type TestHost } from "@depute/service/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { tokens } from "./index.ts";
import { engine, given, newRequest } from "./testing/holders.ts";

const PUBLIC_URL = "https://depute.example";

let calls: ReplacePrincipalRequest[];
let failure: Error | undefined;
const registry = defineService({
  name: "registry",
  settings: {},
  descriptors: [AgentService],
  start: async () => ({
    routes: (router) => {
      router.rpc(AgentService.method.replacePrincipal, (request) => {
        calls.push(request);
        if (failure !== undefined) throw failure;
        return {};
      });
    },
    close: async () => {},
  }),
});

let host: TestHost;
let logged: string[];
beforeEach(async () => {
  calls = [];
  failure = undefined;
  logged = [];
  host = await startTestHost({
    ...{ module: tokens, fakes: [registry], commonArgs: ["--public-url", PUBLIC_URL] },
    onLog: (line) => void logged.push(line),
  });
});
afterEach(() => host.stop());

const keys = () => host.client(KeyService);
const createKey = async (agentId: string) =>
  given((await keys().createKey({ requestId: newRequest(), agentId })).key);
const rotate = async (keyId: string) => given((await keys().rotateKey({ keyId })).key);
const told = (count: number) => vi.waitFor(() => expect(calls).toHaveLength(count), { timeout: 5_000 });
const pairs = () => calls.map(({ id, replaced, principal }) => [id, replaced, principal]);

/** What a statement says, if the key has signed it. */
function claims(statement: string, principal: string): unknown {
  const [header = "", body = "", signature = ""] = statement.split(".");
  const message = new TextEncoder().encode(`${header}.${body}`);
  const [signed, key] = [given(decodeBase64Url(signature)), given(parsePrincipal(principal))];
  if (!engine.verify(signed, message, key)) throw new Error("it is not signed by the key");
  expect(JSON.parse(Buffer.from(header, "base64url").toString())).toEqual({
    ...{ alg: "EdDSA", typ: "depute-key-replacement+jwt" },
  });
  return JSON.parse(Buffer.from(body, "base64url").toString());
}

describe("an agent's key that is rotated (13.3)", () => {
  it("is replaced in the registry by the word of both keys", async () => {
    const old = await createKey("researcher");
    const next = await rotate(old.id);
    await told(1);
    expect(pairs()).toEqual([["researcher", old.principal, next.principal]]);
    const [{ replacedStatement, principalStatement }] = calls as [ReplacePrincipalRequest];
    const said = {
      ...{ sub: "researcher", from: old.principal, to: next.principal, aud: PUBLIC_URL },
      iat: Math.floor(host.clock.now() / 1000),
    };
    expect(claims(replacedStatement, old.principal)).toEqual(said);
    expect(claims(principalStatement, next.principal)).toEqual(said);
  });

  it("is told of once, and a key of no agent not at all", async () => {
    await rotate((await createKey("")).id);
    const old = await createKey("researcher");
    await rotate(old.id);
    await rotate(old.id);
    await told(1);
    await host.restart();
    const other = await createKey("other");
    const next = await rotate(other.id);
    await told(2);
    expect(pairs()[1]).toEqual(["other", other.principal, next.principal]);
  });

  it("is told of when the registry is back, in the order of the rotations, over a restart", async () => {
    failure = DeputeError.received(ErrorReason.DEPENDENCY_UNAVAILABLE, "away");
    const first = await createKey("researcher");
    const second = await rotate(first.id);
    await told(1);
    const third = await rotate(second.id);
    await vi.waitFor(() => expect(logged.join()).toContain("cannot be told of agents' new keys"));
    await host.whileDown(() => {
      calls = [];
      failure = undefined;
    });
    await told(2);
    expect(pairs()).toEqual([
      ["researcher", first.principal, second.principal],
      ["researcher", second.principal, third.principal],
    ]);
  });

  it("is not told of again where the registry knows no such agent", async () => {
    failure = new DeputeError(ErrorReason.AGENT_NOT_FOUND, "no agent", { metadata: { agent: "nobody" } });
    await rotate((await createKey("nobody")).id);
    await told(1);
    await vi.waitFor(() => expect(logged.join()).toContain("does not give an agent its new key"));
    failure = undefined;
    await host.restart();
    await rotate((await createKey("researcher")).id);
    await told(2);
    expect(pairs()[1]?.[0]).toBe("researcher");
  });

  it("leads away from a key that is revoked meanwhile, and not to one that is", async () => {
    failure = DeputeError.received(ErrorReason.DEPENDENCY_UNAVAILABLE, "away");
    const compromised = await createKey("one");
    const next = await rotate(compromised.id);
    const spoilt = await createKey("two");
    const revoked = await rotate(spoilt.id);
    await keys().revokeKeptKey({ keyId: compromised.id });
    await keys().revokeKeptKey({ keyId: revoked.id });
    await host.whileDown(() => {
      calls = [];
      failure = undefined;
    });
    await vi.waitFor(() => expect(logged.join()).toContain("is revoked already"));
    await told(1);
    expect(pairs()).toEqual([["one", compromised.principal, next.principal]]);
  });
});
