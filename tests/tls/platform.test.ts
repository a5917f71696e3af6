import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { redisForTests } from "@depute/bus/testing";
import { connect as connectDepute, type TlsOptions } from "@depute/client";
import { startPlatformProcess } from "@depute/example-sentiment/processes";
import { ownPostgresForTests } from "@depute/store/testing";
import * as grpc from "@grpc/grpc-js";
import { freePorts } from "depute/ports";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { userOf } from "../cli/depute.ts";
import { type Front, postgresFront, tlsFront } from "./fronts.ts";

const run = promisify(execFile);

/**
 * Exit codes of curl when the server ends the connection by an alert. The alert may come at the handshake, at a
 * write, at a read or in HTTP/2.
 */
const CURL_TLS_FAILURES = [35, 55, 56, 16];
const closing: (() => unknown)[] = [];

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "depute-tls-"));
  closing.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The folder into which `depute certs create` writes the certificates. */
const certificates = join(temporaryFolder(), "certs");
const file = (name: string): string => join(certificates, name);
const pem = (name: string): string => readFileSync(file(name), "utf8");

beforeAll(async () => {
  const { code, err, out } = await command("", {}, ["certs", "create", certificates]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toContain(`export DEPUTE_TLS_CERT_FILE=${file("server.pem")}`);
}, 60_000);
afterAll(async () => {
  for (const close of closing.splice(0).reverse()) await close();
}, 60_000);

const listenerEnv = (): Record<string, string> => ({
  DEPUTE_TLS_CERT_FILE: file("server.pem"),
  DEPUTE_TLS_KEY_FILE: file("server.key"),
  DEPUTE_TLS_CA_FILE: file("ca.pem"),
});

async function start(args: readonly string[], env: Record<string, string>): Promise<string> {
  const flags = ["--data-dir", temporaryFolder(), "--log-level", "error"];
  const platform = await startPlatformProcess([...args, ...flags], env);
  closing.push(() => platform.stop());
  return platform.about;
}

/** Runs `depute` to its end, as a user with these settings. */
async function command(url: string, env: Record<string, string>, words: readonly string[]) {
  const user = userOf(url, env);
  try {
    return await user.run(words);
  } finally {
    user.remove();
  }
}

/** Delegates a task to a worker, and returns the task's result. Delegator and worker both use the SDK. */
async function delegate(url: string, protocol: "connect" | "grpc", tls: TlsOptions): Promise<unknown> {
  const depute = connectDepute(url, { protocol, tls });
  const agentId = `echo-${protocol}`;
  await depute.register({ id: agentId, version: "1.0.0", capabilities: [{ id: "echo" }] });
  const worker = depute.work({ agentId, work: async (input) => ({ output: { heard: input ?? null } }) });
  try {
    const task = await depute.delegate({ agentId, capabilityId: "echo", input: "hello" });
    return (await task.result()).output;
  } finally {
    await worker.stop();
    depute.close();
  }
}

/** Returns the status code of the health check by @grpc/grpc-js. */
function healthByGrpcJs(url: string, credentials: grpc.ChannelCredentials): Promise<number> {
  const caller = new grpc.Client(new URL(url).host, credentials);
  return new Promise((resolve) => {
    const asBytes = (value: Buffer): Buffer => value;
    const options = { deadline: Date.now() + 10_000 };
    const path = "/grpc.health.v1.Health/Check";
    caller.makeUnaryRequest(path, asBytes, asBytes, Buffer.alloc(0), options, (error) => {
      caller.close();
      resolve(error?.code ?? grpc.status.OK);
    });
  });
}

/** Returns the body of an answer to curl, then a space and the version of HTTP. */
async function curl(...args: string[]): Promise<string> {
  return (await run("curl", ["-s", "-w", " %{http_version}", ...args])).stdout;
}

test("existing certificates are not overwritten", async () => {
  const { code, err } = await command("", {}, ["certs", "create", certificates]);
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining("choose another folder") });
});

describe("one process with TLS", () => {
  let url = "";
  beforeAll(async () => {
    url = await start(["start", "--gateway-port", "0"], listenerEnv());
  }, 60_000);

  test("states that its address is https", () => {
    expect(url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  });

  test.each([
    ["--http1.1", / 1\.1$/],
    ["--http2", / 2$/],
  ])("answers curl %s", async (flag, version) => {
    expect(await curl(flag, "--cacert", file("ca.pem"), `${url}/health`)).toMatch(version);
  });

  test("is not trusted by clients without its authority", async () => {
    await expect(curl(`${url}/health`)).rejects.toMatchObject({ code: 60 });
    expect(await healthByGrpcJs(url, grpc.credentials.createSsl())).toBe(grpc.status.UNAVAILABLE);
  });

  test.each(["connect", "grpc"] as const)("serves the SDK over %s", async (protocol) => {
    expect(await delegate(url, protocol, { ca: pem("ca.pem") })).toEqual({ heard: "hello" });
  });

  test("serves the command line, which names the missing flag of the authority", async () => {
    const words = ["agents", "list", "-o", "id"];
    expect(await command(url, { DEPUTE_CA_FILE: file("ca.pem") }, words)).toMatchObject({ code: 0, err: "" });
    const refused = await command(url, {}, words);
    expect(refused).toMatchObject({ code: 5, err: expect.stringContaining("--ca-file") });
  });
});

const redis = await redisForTests();
const postgres = await ownPostgresForTests();
closing.push(() => redis?.stop());
closing.push(() => postgres?.stop());

describe.runIf(redis !== undefined && postgres !== undefined)("five processes with mTLS", () => {
  let url = "";
  let redisFront: Front;
  let postgresServer: Front;

  beforeAll(async () => {
    const identity = { certificate: pem("server.pem"), key: pem("server.key") };
    redisFront = await tlsFront(identity, Number(new URL(redis?.url ?? "").port || 6379));
    closing.push(() => redisFront.stop());
    postgresServer = await postgresFront(identity, postgres?.path ?? "");
    closing.push(() => postgresServer.stop());
    const names = ["GATEWAY", "REGISTRY", "TASKS", "TOKENS", "VERIFIER"];
    const ports = await freePorts(names.length);
    const trust = `sslmode=verify-full&sslrootcert=${encodeURIComponent(file("ca.pem"))}`;
    url = await start(["cluster"], {
      ...listenerEnv(),
      ...Object.fromEntries(names.map((name, n) => [`DEPUTE_${name}_PORT`, String(ports[n])])),
      DEPUTE_TLS_CLIENT_CA_FILE: file("ca.pem"),
      DEPUTE_REDIS_URL: `rediss://127.0.0.1:${redisFront.port}`,
      DEPUTE_POSTGRES_URL: `postgres://depute@localhost:${postgresServer.port}/postgres?${trust}`,
    });
  }, 180_000);

  test("refuse a client without a certificate", async () => {
    const refusal = await curl("--cacert", file("ca.pem"), `${url}/health`).catch((error) => error);
    expect(CURL_TLS_FAILURES).toContain(refusal.code);
    const credentials = grpc.credentials.createSsl(readFileSync(file("ca.pem")));
    expect(await healthByGrpcJs(url, credentials)).toBe(grpc.status.UNAVAILABLE);
    const refused = await command(url, { DEPUTE_CA_FILE: file("ca.pem") }, ["agents", "list"]);
    expect(refused).toMatchObject({ code: 5, err: expect.stringContaining("--client-cert-file") });
  });

  test("serve clients with a certificate", async () => {
    const [ca, key, cert] = ["ca.pem", "client.key", "client.pem"].map((name) => readFileSync(file(name)));
    const credentials = grpc.credentials.createSsl(ca, key, cert);
    expect(await healthByGrpcJs(url, credentials)).toBe(grpc.status.OK);
    const tls = { ca: pem("ca.pem"), cert: pem("client.pem"), key: pem("client.key") };
    expect(await delegate(url, "grpc", tls)).toEqual({ heard: "hello" });
    const env = {
      DEPUTE_CA_FILE: file("ca.pem"),
      DEPUTE_CLIENT_CERT_FILE: file("client.pem"),
      DEPUTE_CLIENT_KEY_FILE: file("client.key"),
    };
    const { code, out } = await command(url, env, ["agents", "list", "-o", "id"]);
    expect({ code, out: out.trim() }).toEqual({ code: 0, out: "echo-grpc" });
  });

  test("reach Redis and Postgres over TLS", () => {
    expect(redisFront.accepted()).toBeGreaterThan(0);
    expect(postgresServer.accepted()).toBeGreaterThan(0);
  });
});
