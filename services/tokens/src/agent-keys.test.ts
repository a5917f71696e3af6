import type { ReplacePrincipalRequest } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { KeyService } from "@depute/contracts/depute/tokens/v1/key_service_pb";
import { DeputeError, decodeBase64Url, ErrorReason } from "@depute/core";
import { parsePrincipal } from "@depute/dct";
import { defineService } from "@depute/service";
import { startTestHost, type TestHost } from "@depute/service/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { tokens } from "./index.ts";
import { engine, newRequest, requirePresent } from "./testing/holders.ts";

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
  requirePresent((await keys().createKey({ requestId: newRequest(), agentId })).key);
const rotate = async (keyId: string) => requirePresent((await keys().rotateKey({ keyId })).key);
const waitForCalls = (count: number) =>
  vi.waitFor(() => expect(calls).toHaveLength(count), { timeout: 5_000 });
const pairs = () => calls.map(({ agentId: id, replaced, principal }) => [id, replaced, principal]);

/**
 * Verifies that the principal's key signed a statement, and returns the statement's claims. Throws for any other
 * signature.
 */
function claims(statement: string, principal: string): unknown {
  const [header = "", body = "", signature = ""] = statement.split(".");
  const message = new TextEncoder().encode(`${header}.${body}`);
  const [signed, key] = [
    requirePresent(decodeBase64Url(signature)),
    requirePresent(parsePrincipal(principal)),
  ];
  if (!engine.verify(signed, message, key)) throw new Error("it is not signed by the key");
  expect(JSON.parse(Buffer.from(header, "base64url").toString())).toEqual({
    ...{ alg: "EdDSA", typ: "depute-key-replacement+jwt" },
  });
  return JSON.parse(Buffer.from(body, "base64url").toString());
}

describe("an agent's key that is rotated (13.3)", () => {
  it("is replaced in the registry by statements of both keys", async () => {
    const old = await createKey("researcher");
    const next = await rotate(old.id);
    await waitForCalls(1);
    expect(pairs()).toEqual([["researcher", old.principal, next.principal]]);
    const [{ replacedStatement, principalStatement }] = calls as [ReplacePrincipalRequest];
    const reportedKey = {
      ...{ sub: "researcher", from: old.principal, to: next.principal, aud: PUBLIC_URL },
      iat: Math.floor(host.clock.now() / 1000),
    };
    expect(claims(replacedStatement, old.principal)).toEqual(reportedKey);
    expect(claims(principalStatement, next.principal)).toEqual(reportedKey);
  });

  it("is reported once; a key without an agent is not reported", async () => {
    await rotate((await createKey("")).id);
    const old = await createKey("researcher");
    await rotate(old.id);
    await rotate(old.id);
    await waitForCalls(1);
    await host.restart();
    const other = await createKey("other");
    const next = await rotate(other.id);
    await waitForCalls(2);
    expect(pairs()[1]).toEqual(["other", other.principal, next.principal]);
  });

  it("is reported when the registry is available again, in the order of rotations, across a restart", async () => {
    failure = DeputeError.received(ErrorReason.DEPENDENCY_UNAVAILABLE, "away");
    const first = await createKey("researcher");
    const second = await rotate(first.id);
    await waitForCalls(1);
    const third = await rotate(second.id);
    await vi.waitFor(() => expect(logged.join()).toContain("new keys of agents cannot be reported"));
    await host.whileDown(() => {
      calls = [];
      failure = undefined;
    });
    await waitForCalls(2);
    expect(pairs()).toEqual([
      ["researcher", first.principal, second.principal],
      ["researcher", second.principal, third.principal],
    ]);
  });

  it("is not reported again for an unknown agent", async () => {
    failure = new DeputeError(ErrorReason.AGENT_NOT_FOUND, "no agent", { metadata: { agent: "nobody" } });
    await rotate((await createKey("nobody")).id);
    await waitForCalls(1);
    await vi.waitFor(() => expect(logged.join()).toContain("refuses the new key of an agent"));
    failure = undefined;
    await host.restart();
    await rotate((await createKey("researcher")).id);
    await waitForCalls(2);
    expect(pairs()[1]?.[0]).toBe("researcher");
  });

  it("replaces a key that was revoked meanwhile, never by a revoked one", async () => {
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
    await vi.waitFor(() => expect(logged.join()).toContain("is already revoked"));
    await waitForCalls(1);
    expect(pairs()).toEqual([["one", compromised.principal, next.principal]]);
  });
});
