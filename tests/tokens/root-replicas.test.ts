import { REPLICA_MIGRATIONS } from "@depute/service";
import { openStore } from "@depute/store";
import { postgresForTests } from "@depute/store/testing";
import { afterAll, describe, expect, test } from "vitest";
import { type Json, type Replica, Replicas } from "../replicas/replica.ts";
import { ForeignHolder } from "./foreign-holder.ts";
import { issuerOf } from "./foreign-root-reader.ts";

/**
 * This file tests rotations of the root with two processes of the tokens service on one Postgres database, called
 * as JSON over HTTP.
 */

const postgres = await postgresForTests();
const replicas = new Replicas(postgres?.url ?? "");
afterAll(async () => {
  await postgres?.stop();
  replicas.close();
});

const TOKENS = "depute.tokens.v1.TokenService";
const ROOTS = "depute.tokens.v1.RootKeyService";
const TARGET = "https://api.example/documents";
const READ = { namespace: "docs", action: "read", resource: "/**" };
const holder = new ForeignHolder();

async function call(replica: Replica, method: string, request: Json): Promise<Json> {
  const answer = await replica.call(method, request);
  if (answer.code !== undefined) throw new Error(`${method}: ${JSON.stringify(answer)}`);
  return answer;
}

async function mint(replica: Replica): Promise<string> {
  const { token } = await call(replica, `${TOKENS}/MintToken`, {
    ...{ requestId: crypto.randomUUID(), delegatee: holder.principal, capabilities: [READ] },
    ...{ contractId: "ct_0123456789ab", maxBudgetMicrocents: 1000, lifetime: "3600s" },
  });
  return (token as { token: string }).token;
}

async function present(replica: Replica, token: string): Promise<string> {
  const { denial } = await call(replica, `${TOKENS}/VerifyToken`, {
    token: { token, format: "delegateos-sjt-v1" },
    proof: { jwt: holder.prove("POST", TARGET, token), method: "POST", target: TARGET },
    requested: { ...READ, resource: "/a" },
  });
  return String((denial as Json | undefined)?.type ?? "allowed");
}

async function rotate(replica: Replica, more: Json = {}): Promise<string> {
  const request = { requestId: crypto.randomUUID(), ...more };
  const { key } = await call(replica, `${ROOTS}/RotateRootKey`, request);
  return String((key as Json).principal);
}

// The interval between reads is long, so that no test passes because of it.
const SETTINGS = { DEPUTE_REVOCATION_POLL: "60s" };

describe.skipIf(postgres === undefined)("replicas of the tokens service", async () => {
  const settings = replicas.settings(SETTINGS);
  const all = postgres === undefined ? [] : await replicas.start("tokens", 2, settings);
  const [a, b] = all as [Replica, Replica];
  afterAll(() => replicas.endAll());

  test("begin with one root, and count a rotation at once", async () => {
    const old = await mint(a);
    expect(issuerOf(await mint(b))).toBe(issuerOf(old));
    for (const [at, other] of [
      [a, b],
      [b, a],
    ] as const) {
      const principal = await rotate(at);
      const fresh = await mint(at);
      expect(issuerOf(fresh)).toBe(principal);
      expect(await present(other, fresh)).toBe("allowed");
      expect(issuerOf(await mint(other))).toBe(principal);
      expect([await present(at, old), await present(other, old)]).toEqual(["allowed", "allowed"]);
    }
  });

  test("deny no token during rotations under load", async () => {
    const old = await mint(a);
    let isOver = false;
    const loads = [a, b].map(async (replica, n) => {
      const faults: string[] = [];
      while (!isOver) {
        const fresh = await mint(replica);
        const outcomes = await Promise.all([old, fresh].map((token) => present(n === 0 ? b : a, token)));
        faults.push(...outcomes.filter((outcome) => outcome !== "allowed"));
      }
      return faults;
    });
    await rotate(a, { overlap: "3600s" });
    await rotate(b, { overlap: "3600s" });
    await new Promise((resolve) => setTimeout(resolve, 2000));
    isOver = true;
    expect((await Promise.all(loads)).flat()).toEqual([]);
  });

  test("make one key of a request that both receive", async () => {
    const requestId = crypto.randomUUID();
    const principals = await Promise.all(
      [a, b, a, b].map((replica) => rotate(replica, { requestId, retireNow: true })),
    );
    expect(new Set(principals).size).toBe(1);
  });

  test("refuse a rotation while a replica of an earlier version runs", async () => {
    const { DEPUTE_POSTGRES_SCHEMA_PREFIX: prefix } = settings;
    const store = await openStore({
      ...{ postgres: postgres?.url ?? "", schema: `${prefix}_cluster`, isShared: true },
      ...{ migrations: REPLICA_MIGRATIONS, onError: () => {} },
    });
    const address = "http://127.0.0.1:1";
    // The report of an earlier version, which does not know features.
    await store.write((tx) =>
      tx.run(
        `INSERT INTO replicas (id, service, address, version, serving, leases, start_ms, report_ms)
         VALUES ('older', 'tokens', '${address}', '0.1.9', 1, '[]', 0,
           CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) + 60000)`,
      ),
    );
    const rotateRoot = (request: Json) => b.call(`${ROOTS}/RotateRootKey`, request);
    const { keys: before } = await call(a, `${ROOTS}/ListRootKeys`, {});
    const refused = await rotateRoot({ requestId: "guarded" });
    expect(refused).toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining(`${address} (version 0.1.9); upgrade or stop them`),
    });
    expect(JSON.stringify(refused)).toContain("REPLICA_TOO_OLD");
    expect(await call(a, `${ROOTS}/ListRootKeys`, {})).toEqual({ keys: before });

    const forced = { requestId: "guarded", allowOlderReplicas: true };
    const { key } = await call(a, `${ROOTS}/RotateRootKey`, forced);
    expect(await call(b, `${ROOTS}/RotateRootKey`, forced)).toMatchObject({ key });
    await store.write((tx) => tx.run("DELETE FROM replicas WHERE id = 'older'"));
    await store.close();
    await rotate(b, { retireNow: true });
  });

  test("deny a retired root's tokens from the acknowledgement on", async () => {
    const [atA, atB] = [await mint(a), await mint(b)];
    await rotate(a, { retireNow: true });
    expect([await present(b, atB), await present(a, atA)]).toEqual([
      "DENIAL_TYPE_ROOT_RETIRED",
      "DENIAL_TYPE_ROOT_RETIRED",
    ]);
    const fresh = await mint(b);
    expect([await present(a, fresh), await present(b, fresh)]).toEqual(["allowed", "allowed"]);
    const { trustedRoots } = await call(b, `${TOKENS}/GetIssuer`, {});
    expect(trustedRoots).toEqual([issuerOf(fresh)]);
  });
});
