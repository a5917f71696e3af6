import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { redisForTests } from "@depute/bus/testing";
import {
  attenuateToken,
  createRevocation,
  generateKeypair,
  parseToken,
  requestSession,
  revocationIds,
  type SessionGrant,
  serialiseToken,
} from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { postgresForTests } from "@depute/store/testing";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { type Json, type Replica, Replicas } from "../replicas/replica.ts";
import { ForeignHolder } from "./foreign-holder.ts";

/**
 * This file tests several processes of the tokens service on one Postgres database, called as JSON over HTTP.
 * Without Redis, the processes share only the database.
 */

const postgres = await postgresForTests();
const replicas = new Replicas(postgres?.url ?? "");
afterAll(async () => {
  await postgres?.stop();
  replicas.close();
});

const TOKENS = "depute.tokens.v1.TokenService";
const REVOCATIONS = "depute.tokens.v1.RevocationService";
const SPEND = "depute.tokens.v1.SpendService";
const SESSIONS = "depute.tokens.v1.HolderSessionService";
const TARGET = "https://api.example/documents";
const CONTRACT = "ct_0123456789ab";
const READ = { namespace: "docs", action: "read", resource: "/**" };

interface Minted {
  readonly holder: ForeignHolder;
  readonly token: string;
  readonly revocationId: string;
}

/** Calls a method that has to succeed. */
async function call(replica: Replica, method: string, request: Json): Promise<Json> {
  const answer = await replica.call(method, request);
  if (answer.code !== undefined) throw new Error(`${method}: ${JSON.stringify(answer)}`);
  return answer;
}

async function mint(replica: Replica, more: Json = {}, holder = new ForeignHolder()): Promise<Minted> {
  const answer = await call(replica, `${TOKENS}/MintToken`, {
    requestId: crypto.randomUUID(),
    delegatee: holder.principal,
    capabilities: [READ],
    contractId: CONTRACT,
    maxChainDepth: 3,
    maxBudgetMicrocents: 1000,
    lifetime: "3600s",
    ...more,
  });
  const { token, format } = answer.token as { token: string; format: string };
  expect(format).toBe("delegateos-sjt-v1");
  return { holder, token, revocationId: String(answer.revocationId) };
}

const proofOf = ({ holder, token }: Minted) => holder.prove("POST", TARGET, token);
const serialised = (token: string) => ({ token, format: "delegateos-sjt-v1" });

/** Presents a token with a proof. Returns `allowed` or the denial. */
async function verify(
  replica: Replica,
  minted: Minted,
  jwt = proofOf(minted),
  more: Json = {},
): Promise<string> {
  const answer = await call(replica, `${TOKENS}/VerifyToken`, {
    token: serialised(minted.token),
    proof: { jwt, method: "POST", target: TARGET },
    requested: { ...READ, resource: "/a" },
    ...more,
  });
  const { type } = (answer.denial ?? { type: "allowed" }) as Json;
  return String(type).replace("DENIAL_TYPE_", "").toLowerCase();
}

/** Revokes a minted token. Returns the sequence of the revocation. */
async function revoke(replica: Replica, { revocationId }: Minted): Promise<number> {
  const request = { revocationId, scope: "REVOCATION_SCOPE_CHAIN" };
  const { revocation } = await call(replica, `${REVOCATIONS}/RevokeMintedToken`, request);
  return Number((revocation as Json).sequence);
}

const reserve = (replica: Replica, { token }: Minted, amountMicrocents: number) =>
  replica.call(`${SPEND}/ReserveSpend`, {
    requestId: crypto.randomUUID(),
    token: serialised(token),
    amountMicrocents,
  });

/** Returns the sequences of the revocation log, and the log's head. */
async function logOf(replica: Replica): Promise<{ sequences: number[]; head: unknown }> {
  const { revocations = [] } = await call(replica, `${REVOCATIONS}/ListRevocations`, { pageSize: 1000 });
  const { checkpoint } = await call(replica, `${REVOCATIONS}/GetRevocationCheckpoint`, {});
  const log = revocations as Json[];
  const { head } = checkpoint as Json;
  expect(log.at(-1)?.head ?? "").toBe(head);
  return { sequences: log.map(({ sequence }) => Number(sequence)), head };
}

function counted<Key>(values: readonly Key[]): Map<Key, number> {
  const counts = new Map<Key, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

const SHARED = { DEPUTE_HOLDER_PROOF: "required", DEPUTE_REVOCATION_POLL: "60s" };

describe.skipIf(postgres === undefined)("replicas of the tokens service", async () => {
  // The interval between reads of the log is long, so that no test passes because of it.
  const all = postgres === undefined ? [] : await replicas.start("tokens", 3, replicas.settings(SHARED));
  const at = (n: number) => all[n % all.length] as Replica;
  const [a, b, c] = all as [Replica, Replica, Replica];
  afterAll(() => replicas.endAll());
  const atAll = <T>(run: (replica: Replica, n: number) => Promise<T>) => Promise.all(all.map(run));

  test("accept a proof once, when all receive it at the same time", async () => {
    const minted = await mint(a);
    for (let round = 0; round < 10; round++) {
      const jwt = proofOf(minted);
      const outcomes = await atAll((replica) => verify(replica, minted, jwt));
      expect(counted(outcomes)).toEqual(
        new Map(
          [
            ["allowed", 1],
            ["replayed_proof", 2],
          ].toSorted() as never,
        ),
      );
      expect(await verify(at(round), minted, jwt)).toBe("replayed_proof");
    }
  }, 60_000);

  test("accept a proof without a token once", async () => {
    const holder = new ForeignHolder();
    const proofs = Array.from({ length: 30 }, () => holder.prove("POST", TARGET));
    const outcomes = await Promise.all(
      proofs.map((jwt) =>
        atAll(async (replica) => {
          const request = { proof: { jwt, method: "POST", target: TARGET } };
          return (await call(replica, `${TOKENS}/VerifyProof`, request)).principal ?? "denied";
        }),
      ),
    );
    for (const each of outcomes)
      expect(counted(each)).toEqual(
        new Map(
          [
            [holder.principal, 1],
            ["denied", 2],
          ].toSorted() as never,
        ),
      );
  }, 60_000);

  test("never reserve more than a budget", async () => {
    const minted = await mint(a, { maxBudgetMicrocents: 100 });
    const answers = await Promise.all(Array.from({ length: 30 }, (_, n) => reserve(at(n), minted, 7)));
    expect(answers.filter(({ reservation }) => reservation !== undefined)).toHaveLength(14);
    await atAll(async (replica) => {
      const budget = await call(replica, `${SPEND}/GetBudget`, { token: serialised(minted.token) });
      expect(budget).toMatchObject({ levels: [{ reservedMicrocents: "98" }], remainingMicrocents: "2" });
      expect(await verify(replica, minted)).toBe("allowed");
    });
    expect((await reserve(b, minted, 2)).reservation).toBeDefined();
    expect(await atAll((replica) => verify(replica, minted))).toEqual(Array(3).fill("budget_exceeded"));
  }, 60_000);

  test("settle a reservation once, and show its charge at once", async () => {
    const minted = await mint(a);
    const { reservation } = await reserve(a, minted, 500);
    const reservationId = (reservation as Json).id;
    const commit = (replica: Replica, amountMicrocents: number) =>
      replica.call(`${SPEND}/CommitSpend`, { reservationId, amountMicrocents });
    const answers = await Promise.all([commit(a, 100), commit(b, 200), commit(c, 300)]);
    const [settled, ...more] = answers.flatMap(({ reservation: one }) =>
      one === undefined ? [] : [one as Json],
    );
    expect(more).toEqual([]);
    await atAll(async (replica) => {
      const { levels } = await call(replica, `${SPEND}/GetBudget`, { token: serialised(minted.token) });
      expect(levels).toMatchObject([{ spentMicrocents: settled?.chargedMicrocents }]);
    });
  }, 60_000);

  test("use up a token for one use once", async () => {
    for (let round = 0; round < 5; round++) {
      const minted = await mint(at(round), { binding: { singleUse: true } });
      const outcomes = await atAll((replica) => verify(replica, minted));
      expect(outcomes.filter((outcome) => outcome === "allowed")).toHaveLength(1);
    }
  }, 60_000);

  test("apply the binding of a token that another one has just minted", async () => {
    for (let round = 0; round < 5; round++) {
      const minted = await mint(at(round), { binding: { tenants: ["acme"] } });
      expect(await verify(at(round + 1), minted, undefined, { tenant: "other" })).toBe(
        "capability_not_granted",
      );
      expect(await verify(at(round + 2), minted, undefined, { tenant: "acme" })).toBe("allowed");
    }
  }, 60_000);

  test("allow nothing after the acknowledgement of a revocation", async () => {
    for (let round = 0; round < 8; round++) {
      const minted = await mint(at(round));
      expect(await atAll((replica) => verify(replica, minted))).toEqual(Array(3).fill("allowed"));
      const minRevocationSequence = await revoke(at(round), minted);
      const more = round % 2 ? { minRevocationSequence } : {};
      const outcomes = await atAll((replica) => verify(replica, minted, undefined, more));
      expect(outcomes).toEqual(Array(3).fill("revoked"));
      expect((await reserve(at(round + 1), minted, 1)).reservation).toBeUndefined();
    }
  }, 60_000);

  test("keep one log of revocations without gaps while all of them append", async () => {
    const before = await logOf(a);
    const minted = await Promise.all(Array.from({ length: 30 }, (_, n) => mint(at(n))));
    await Promise.all(minted.map((one, n) => revoke(at(n + 1), one)));
    const logs = await atAll(logOf);
    expect(logs[0]?.sequences).toHaveLength(before.sequences.length + minted.length);
    expect(logs[0]?.sequences).toEqual(logs[0]?.sequences.map((_, n) => n + 1));
    for (const log of logs) expect(log).toEqual(logs[0]);
  }, 60_000);

  test("accept no proof by a key that another one has revoked", async () => {
    const minted = await mint(a);
    expect(await verify(b, minted)).toBe("allowed");
    await call(a, `${REVOCATIONS}/RevokeKeyAsRoot`, { key: minted.holder.principal });
    expect(await atAll((replica) => verify(replica, minted))).toEqual(Array(3).fill("invalid_proof"));
  }, 60_000);

  test("apply a revocation while it waits, and log it once its right is proven", async () => {
    const key = generateKeypair(engine);
    const { token: jwt } = await mint(a, { delegatee: key.principal.id });
    const holder = new ForeignHolder();
    const parsed = parseToken(serialised(jwt));
    if (!parsed.ok) throw new Error(parsed.denial.type);
    const limits = { delegatee: holder.principal, allowedCapabilities: [READ], maxBudgetMicrocents: 10 };
    const attenuated = attenuateToken(engine, parsed.token, limits, key);
    const { token } = serialiseToken(attenuated);
    const revocationId = revocationIds(engine, attenuated)[1] ?? "";
    const minted = { holder, token, revocationId };
    expect(await verify(b, minted)).toBe("allowed");
    const before = (await logOf(a)).sequences.length;
    // No replica has recorded the block, so the entry waits for a chain that proves the revoker's right.
    const entry = {
      ...createRevocation(engine, revocationId, "block", key, Date.now()),
      scope: "REVOCATION_SCOPE_BLOCK",
    };
    expect(await call(a, `${REVOCATIONS}/RevokeToken`, { entry })).toMatchObject({ pending: true });
    expect(await atAll((replica) => verify(replica, minted))).toEqual(Array(3).fill("revoked"));
    for (const { sequences } of await atAll(logOf)) expect(sequences).toHaveLength(before + 1);
  }, 60_000);

  test("serve a holder session that another one opened, and count each call once", async () => {
    const keypair = generateKeypair(engine);
    const minted = await mint(a, { delegatee: keypair.principal.id });
    const htu = `${a.url}/${SESSIONS}/OpenHolderSession`;
    const { token } = minted;
    const asked = requestSession(engine, keypair, {
      htm: "POST",
      htu,
      token,
      audience: "https://api.example",
    });
    const opening = { proof: asked.proof, token: serialised(token), audience: "https://api.example" };
    const { grant, denial } = await call(a, `${SESSIONS}/OpenHolderSession`, opening);
    expect(denial).toBeUndefined();
    const session = asked.accept(toGrant(grant as Json));
    const prove = (target = TARGET) => session.prove({ htm: "POST", htu: target });
    for (let round = 0; round < 5; round++) {
      const jwt = prove();
      const outcomes = await atAll((replica) => verify(replica, minted, jwt));
      expect(outcomes.toSorted()).toEqual(["allowed", "replayed_proof", "replayed_proof"]);
    }
    const closing = { proof: prove(`https://api.example/close`), token: serialised(token) };
    await b.call(`${SESSIONS}/CloseHolderSession`, closing);
    expect(await verify(c, minted, prove())).toBe("allowed");
    const closeHtu = `${b.url}/${SESSIONS}/CloseHolderSession`;
    const other = requestSession(engine, keypair, { htm: "POST", htu, token, audience: b.url });
    const reopening = { proof: other.proof, token: serialised(token), audience: b.url };
    const opened = await call(a, `${SESSIONS}/OpenHolderSession`, reopening);
    const second = other.accept(toGrant(opened.grant as Json));
    const proveSecond = () => second.prove({ htm: "POST", htu: closeHtu });
    const presented = () => ({ proof: { jwt: proveSecond(), method: "POST", target: closeHtu } });
    const used = { token: serialised(token), ...presented() };
    expect(await call(c, `${TOKENS}/VerifyProof`, used)).toMatchObject({ principal: keypair.principal.id });
    await call(b, `${SESSIONS}/CloseHolderSession`, { proof: proveSecond(), token: serialised(token) });
    await atAll(async (replica) => {
      const late = { token: serialised(token), ...presented() };
      expect((await call(replica, `${TOKENS}/VerifyProof`, late)).denial).toBeDefined();
    });
  }, 60_000);

  test("publish and sign with one key", async () => {
    const answers = await atAll((replica) => call(replica, `${TOKENS}/GetSigningKeys`, {}));
    expect(answers[0]).not.toEqual({});
    for (const answer of answers) expect(answer).toEqual(answers[0]);
  }, 60_000);

  test("keep one audit log without gaps", async () => {
    await Promise.all(Array.from({ length: 30 }, (_, n) => mint(at(n))));
    const logs = await atAll(async (replica) => {
      const records: number[] = [];
      for (let afterSequence = 0, isMore = true; isMore; ) {
        const page = await call(replica, "depute.tokens.v1.AuditService/ListAuditRecords", {
          afterSequence,
          pageSize: 1000,
        });
        const sequences = ((page.records ?? []) as Json[]).map(({ sequence }) => Number(sequence));
        records.push(...sequences);
        afterSequence = sequences.at(-1) ?? afterSequence;
        isMore = sequences.length === 1000;
      }
      return records;
    });
    const shortest = Math.min(...logs.map(({ length }) => length));
    expect(shortest).toBeGreaterThan(100);
    for (const log of logs)
      expect(log.slice(0, shortest)).toEqual(log.slice(0, shortest).map((_, n) => n + 1));
  }, 60_000);
});

describe.skipIf(postgres === undefined)("replicas of the tokens service that fail", () => {
  afterEach(() => replicas.endAll());
  const start = (count: number, env: Record<string, string> = {}) =>
    replicas.start("tokens", count, replicas.settings({ DEPUTE_REVOCATION_POLL: "1s", ...env }));

  test("accept no proof and no amount that a killed one has accepted", async () => {
    const [killed, left] = (await start(2)) as [Replica, Replica];
    const minted = await mint(left, { maxBudgetMicrocents: 1000 });
    const proofs = Array.from({ length: 200 }, () => proofOf(minted));
    const accepted: string[] = [];
    const pending = proofs.map((jwt, n) => {
      const isReservation = n % 4 === 0;
      if (!isReservation) {
        return verify(killed, minted, jwt).then(
          (outcome) => void (outcome === "allowed" && accepted.push(jwt)),
          () => {},
        );
      }
      return reserve(killed, minted, 1).then(
        ({ reservation }) => void (reservation !== undefined && accepted.push("reserved")),
        () => {},
      );
    });
    await Promise.race(pending);
    await killed.kill();
    await Promise.all(pending);
    expect(accepted.length).toBeGreaterThan(0);
    for (const jwt of accepted)
      if (jwt !== "reserved") expect(await verify(left, minted, jwt)).toBe("replayed_proof");
    const budget = await call(left, `${SPEND}/GetBudget`, { token: serialised(minted.token) });
    const reserved = Number((budget.levels as Json[])[0]?.reservedMicrocents ?? 0);
    expect(reserved).toBeGreaterThanOrEqual(accepted.filter((one) => one === "reserved").length);
    expect(reserved).toBeLessThanOrEqual(50);
  }, 90_000);

  test("allow nothing that was revoked while one was stopped", async () => {
    const [stopped, left] = (await start(2)) as [Replica, Replica];
    const all = await Promise.all(Array.from({ length: 5 }, (_, n) => mint(n % 2 ? stopped : left)));
    for (const minted of all) expect(await verify(stopped, minted)).toBe("allowed");
    const used = proofOf(all[0] as Minted);
    expect(await verify(left, all[0] as Minted, used)).toBe("allowed");
    // The last calls before the stop may be in any state.
    const interrupted = all.map((minted) => verify(stopped, minted).catch(() => "unavailable"));
    stopped.pause();
    for (const minted of all) await revoke(left, minted);
    const late = all.map((minted) => verify(stopped, minted));
    const replayed = verify(stopped, all[0] as Minted, used);
    await delay(3_000);
    stopped.resume();
    expect(await Promise.all(late)).toEqual(Array(5).fill("revoked"));
    expect(await replayed).not.toBe("allowed");
    await Promise.all(interrupted);
    // The replica that was stopped continues, and has all revocations in its log.
    const minted = await mint(stopped);
    expect(await verify(left, minted)).toBe("allowed");
    await revoke(stopped, minted);
    expect(await verify(left, minted)).toBe("revoked");
    expect(await logOf(stopped)).toEqual(await logOf(left));
  }, 90_000);

  test("push each revocation to a peer once, also after the one that pushes is killed", async () => {
    const received: string[] = [];
    const peer = createServer(async (request, response) => {
      const { params } = JSON.parse(await text(request)) as {
        params: { revocation: { revocationId: string } };
      };
      received.push(params.revocation.revocationId);
      response.writeHead(204).end();
    });
    await new Promise<void>((resolve) => peer.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(peer.address() as AddressInfo).port}/delegateos`;
    try {
      const all = await start(3, { DEPUTE_REVOCATION_PEERS: url, DEPUTE_REVOCATION_SOURCE_POLL: "1s" });
      const sent: string[] = [];
      for (const [n, replica] of all.entries()) {
        const left = all.slice(n);
        for (let k = 0; k < 4; k++) {
          const minted = await mint(left[k % left.length] as Replica);
          await revoke(left[(k + 1) % left.length] as Replica, minted);
          sent.push(minted.revocationId);
        }
        await expect.poll(() => new Set(received).size, { timeout: 20_000 }).toBe(sent.length);
        expect(received.slice(-4).toSorted()).toEqual(sent.slice(-4).toSorted());
        if (n < 2) await replica.kill();
      }
      // A killed replica may have pushed entries whose position it had not stored, so the peer may receive them
      // twice.
      expect(new Set(received)).toEqual(new Set(sent));
    } finally {
      peer.close();
    }
  }, 120_000);
});

describe.skipIf(postgres === undefined)("a watcher of revocations at another replica", async () => {
  const redis = postgres === undefined ? undefined : await redisForTests();
  afterAll(() => redis?.stop());
  afterEach(() => replicas.endAll());

  test.each([
    { means: "Redis", env: { DEPUTE_REDIS_URL: redis?.url ?? "", DEPUTE_REVOCATION_POLL: "60s" } },
    { means: "polls", env: { DEPUTE_REVOCATION_POLL: "1s" } },
  ])(
    "receives each entry by $means",
    async ({ env }) => {
      const settings = replicas.settings(env as Record<string, string>);
      const [writing, watching] = (await replicas.start("tokens", 2, settings)) as [Replica, Replica];
      const entries = watching.stream(`${REVOCATIONS}/WatchRevocations`, { sendStart: true }, 11);
      for (let n = 0; n < 10; n++) await revoke(writing, await mint(writing));
      const sequences = (await entries).map(({ sequence }) => Number(sequence ?? 0));
      expect(sequences).toEqual(Array.from({ length: 11 }, (_, n) => n));
    },
    40_000,
  );
});

function toGrant({ id, expireTime, verifierKey, signer, signature }: Json): SessionGrant {
  const text = (bytes: unknown) => Buffer.from(String(bytes), "base64").toString("base64url");
  return {
    ...{ id: String(id), expiresAt: Date.parse(String(expireTime)), signer: String(signer) },
    ...{ verifierKey: text(verifierKey), signature: text(signature) },
  };
}
