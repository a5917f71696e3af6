import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, introduce, type Json, startPlatform, type TestPlatform } from "./platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
  await introduce(platform, "echo");
});
afterAll(() => platform.stop());

const { privateKey, publicKey } = generateKeyPairSync("ed25519");
const JWK = publicKey.export({ format: "jwk" });

interface Parts {
  readonly header?: object;
  readonly jwk?: object;
  readonly claims?: object;
}

/** Makes a DPoP proof (RFC 9449) with the cryptography of Node.js only, as a foreign program would. */
function proof(htm: string, htu: string, { header = {}, jwk = {}, claims = {} }: Parts = {}): string {
  const head = { typ: "dpop+jwt", alg: "EdDSA", jwk: { ...JWK, ...jwk }, ...header };
  const payload = { htm, htu, iat: Math.floor(Date.now() / 1000), jti: randomUUID(), ...claims };
  const signed = [head, payload]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .join(".");
  return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString("base64url")}`;
}

type Door = [name: string, method: string, path: string, body?: Json, accept?: string];

const EVENTS = "text/event-stream";
const SESSION = "/v1/asp/sessions/01980000-0000-7000-8000-000000000000";

/** The query string by which Connect's GET protocol carries an empty request. */
const GET_QUERY = "?connect=v1&encoding=json&message=%7B%7D";

const DOORS: Door[] = [
  ["Connect", "POST", "/depute.tokens.v1.TokenService/GetIssuer", {}],
  ["Connect by GET", "GET", `/depute.tokens.v1.TokenService/GetIssuer${GET_QUERY}`],
  ["another service over Connect by GET", "GET", `/depute.tasks.v1.TaskService/ListTasks${GET_QUERY}`],
  ["another service over Connect", "POST", "/depute.tasks.v1.TaskService/ListTasks", {}],
  ["NEKTE", "POST", "/nekte/echo", call("nekte.discover", { level: 0 })],
  ["NEKTE delegation", "POST", "/nekte/echo", call("nekte.task.status", { task_id: "task-1" })],
  ["DelegateOS", "POST", "/delegateos", call("delegateos/revoke", revocation())],
  ["DelegateOS's list", "GET", "/delegateos/revocations"],
  ["ASP", "GET", "/v1/asp/discover"],
  ["CAP", "GET", "/cap/inbox/echo"],
  ["Agenta", "GET", "/agenta/offers"],
  ["CAP's events of an inbox", "GET", "/cap/inbox/echo", undefined, EVENTS],
  ["Agenta's events", "GET", "/agenta/execution_requests/request-0001/receipts", undefined, EVENTS],
  ["ASP's events", "GET", `${SESSION}/messages`, undefined, EVENTS],
  ["ASP's events of a delegation", "GET", `${SESSION}/delegations/del_1/events`, undefined, EVENTS],
];

function revocation() {
  const text = "A".repeat(43);
  return {
    revocation: {
      ...{ revocationId: text, revokedBy: text, revokedAt: "2026-01-01T00:00:00Z", scope: "block" },
      signature: "A".repeat(86),
    },
  };
}

const ask = ([, method, path, body, accept = "*/*"]: Door, dpop: string) =>
  fetch(`${platform.url}${path}`, {
    method,
    headers: { "content-type": "application/json", accept, dpop },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
const addressOf = (path: string) => `${platform.url}${path.split("?", 1)[0]}`;

const FAULTS: [claim: string, parts: (htm: string, htu: string) => [string, string, Parts]][] = [
  ["htm", (htm, htu) => [htm === "GET" ? "POST" : "GET", htu, {}]],
  ["htu", (htm, htu) => [htm, `${htu}/elsewhere`, {}]],
  ["iat", (htm, htu) => [htm, htu, { claims: { iat: Math.floor(Date.now() / 1000) - 3600 } }]],
  ["jti", (htm, htu) => [htm, htu, { claims: { jti: "short" } }]],
  [
    "ath",
    (htm, htu) => [htm, htu, { claims: { ath: createHash("sha256").update("t").digest("base64url") } }],
  ],
];

describe.each(DOORS)("a proof without a token over %s", (...door) => {
  const [, method, path] = door;

  test.each(FAULTS)("with a wrong %s is 401, and the answer names it", async (claim, parts) => {
    const htu = addressOf(path);
    const answer = await ask(door, proof(...parts(method, htu)));
    const text = await answer.text();
    expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([401, "DPoP, Bearer"]);
    expect(text).toContain(claim);
    if (claim === "htu") expect(text).toContain(htu);
  });

  test("that is used twice is 401 for its jti, and a new one is not", async () => {
    const once = proof(method, addressOf(path));
    expect((await ask(door, once)).status).not.toBe(401);
    const again = await ask(door, once);
    expect([again.status, await again.text()]).toEqual([401, expect.stringContaining("jti")]);
  });

  test.each<[string, Parts]>([
    ["kid, use and alg", { jwk: { kid: "k1", use: "sig", alg: "EdDSA" } }],
    ["the algorithm of RFC 9864", { header: { alg: "Ed25519" }, jwk: { alg: "Ed25519" } }],
  ])("whose key has %s counts", async (_, parts) => {
    expect((await ask(door, proof(method, addressOf(path), parts))).status).not.toBe(401);
  });
});

test("over gRPC it is UNAUTHENTICATED, with the claim and its expected value", async () => {
  const client = new Client(new URL(platform.url).host, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set("dpop", proof("POST", `${platform.url}/elsewhere`));
  const path = "/depute.tokens.v1.TokenService/GetIssuer";
  const bytes = (value: Buffer) => value;
  const refused = await new Promise<ServiceError | null>((resolve) => {
    client.makeUnaryRequest(path, bytes, bytes, Buffer.alloc(0), metadata, (error) => resolve(error));
  });
  const htu = `${platform.url}${path}`;
  expect(refused).toMatchObject({ code: 16, details: expect.stringContaining(`htu is not ${htu}`) });
  client.close();
});
