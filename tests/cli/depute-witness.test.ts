import { execFile } from "node:child_process";
import { createHash, createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";
import { chmodSync, cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Helper, startPlatformProcess } from "@depute/example-sentiment/processes";
import { freePorts } from "depute/ports";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { backendOf, Deployment, shell } from "./deployment.ts";

const LONG = 300_000;
const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "depute-by-depute-"));
const at = (name: string) => join(folder, name);
const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Secrets of callers at the witness. */
const SECRETS = {
  "platform-1": "secret-of-platform-1",
  ann: "secret-of-the-auditor",
  oscar: "of-the-operator",
};
const ROLES = { "platform-1": "platform", ann: "auditor", oscar: "operator" };
let keyPrincipal = "";

beforeAll(async () => {
  const made = await shell(["keys", "new", at("witness.key")]);
  expect(made, made.err).toMatchObject({ code: 0 });
  keyPrincipal = made.out.trim();
  const certs = await shell(["certs", "create", at("certs")]);
  expect(certs, certs.err).toMatchObject({ code: 0 });
  const entries = Object.entries(SECRETS).map(([principal, secret]) => ({
    principal,
    sha256: createHash("sha256").update(secret).digest("hex"),
    roles: [ROLES[principal as keyof typeof ROLES]],
  }));
  writeFileSync(
    at("credentials.json"),
    JSON.stringify([...entries, { principal: keyPrincipal, roles: ["platform"] }]),
  );
  writeFileSync(at("token.secret"), `${SECRETS["platform-1"]}\n`);
  chmodSync(at("token.secret"), 0o600);
}, LONG);

/** The other Depute, at one address across its restarts. */
class WitnessPlatform {
  readonly #tls: boolean;
  readonly #port: number;
  readonly #data: string;
  #process: Helper<string> | undefined;

  constructor(name: string, port: number, tls: boolean) {
    this.#data = at(`${name}-witness`);
    this.#port = port;
    this.#tls = tls;
  }

  get url(): string {
    return `${this.#tls ? "https" : "http"}://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    const args = ["start", "--auth", "required", "--credentials-file", at("credentials.json")];
    this.#process = await startPlatformProcess([...args, "--data-dir", this.#data], {
      ...{ DEPUTE_LOG_LEVEL: "silent", DEPUTE_GATEWAY_PORT: String(this.#port) },
      ...(this.#tls && {
        DEPUTE_TLS_CERT_FILE: at("certs/server.pem"),
        DEPUTE_TLS_KEY_FILE: at("certs/server.key"),
      }),
    });
  }

  async stop(): Promise<void> {
    await this.#process?.stop();
  }

  /** Calls by curl. @returns the document, also of a refusal */
  async curl(caller: keyof typeof SECRETS, method: string, body: object) {
    const { stdout } = await run("curl", [
      ...["--silent", "--show-error", "--cacert", at("certs/ca.pem")],
      ...["-H", `authorization: Bearer ${SECRETS[caller]}`, "-H", "content-type: application/json"],
      ...["-d", JSON.stringify(body), `${this.url}/depute.verifier.v1.WitnessService/${method}`],
    ]);
    return JSON.parse(stdout);
  }

  /** Reads the record of a platform as an auditor. */
  async record(platform: string) {
    return (await this.curl("ann", "GetWitnessedPlatform", { platform })).platform;
  }
}

async function startWitness(name: string, tls: boolean): Promise<WitnessPlatform> {
  const [port = 0] = await freePorts(1);
  const witness = new WitnessPlatform(name, port, tls);
  await witness.start();
  cleanUps.push(() => witness.stop());
  return witness;
}

async function start(dataDir: string, env: Record<string, string>): Promise<Deployment> {
  const platform = await Deployment.start(dataDir, backendOf(env));
  cleanUps.push(() => platform.stop());
  return platform;
}

const refusedStart = (dataDir: string, env: Record<string, string>) =>
  shell(["start", "--data-dir", dataDir], { ...backendOf(env), DEPUTE_GATEWAY_PORT: "0" });

/** Mints a token and revokes it. */
async function revokeOne(platform: Deployment): Promise<void> {
  const principal = (await platform.run(["keys", "new", `${Math.random()}.key`])).out.trim();
  const words = ["--delegatee", principal, "--capability", "web:search:**", "--budget", "1000"];
  const created = await platform.run(["tokens", "create", ...words]);
  expect(created, created.err).toMatchObject({ code: 0 });
  writeFileSync(join(platform.folder, "token.txt"), created.out);
  const revoked = await platform.run(["tokens", "revoke", "@token.txt"]);
  expect(revoked, revoked.err).toMatchObject({ code: 0 });
}

/** Waits until the witness has both heads at a size. */
const untilWitnessed = (witness: WitnessPlatform, platform: string, size: number) =>
  vi.waitFor(
    async () => {
      const record = await witness.record(platform);
      expect(record?.logHead?.treeSize).toBe(String(size));
      expect(record?.revocationCheckpoint?.sequence).toBe(String(size));
      return record;
    },
    { timeout: 60_000, interval: 200 },
  );

/** Checks the signature of a head with node:crypto alone. */
function isSigned({ log, treeSize, rootHash, headTime, signature }: Record<string, string>): boolean {
  const root = Buffer.from(rootHash ?? "", "base64").toString("base64url");
  const time = Date.parse(headTime ?? "");
  const text = `{"log":"${log}","rootHash":"${root}","time":${time},"treeSize":${treeSize}}`;
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: log ?? "" }, format: "jwk" });
  return verify(
    null,
    Buffer.from(`delegateos-log-head-v1\0${text}`),
    key,
    Buffer.from(signature ?? "", "base64"),
  );
}

const KINDS = [
  {
    name: "over TLS with a credential",
    tls: true,
    platform: () => "platform-1",
    credentials: () => ({
      DEPUTE_WITNESS_TOKEN_FILE: at("token.secret"),
      DEPUTE_WITNESS_CA_FILE: at("certs/ca.pem"),
    }),
  },
  {
    name: "with a holder key",
    tls: false,
    platform: () => keyPrincipal,
    credentials: () => ({ DEPUTE_WITNESS_KEY_FILE: at("witness.key") }),
  },
];

test.each(KINDS)(
  "another platform as witness, $name, notices an older copy of the data folder",
  async ({ name, tls, platform: principal, credentials }) => {
    const prefix = name.replaceAll(" ", "-");
    const [data, copy] = [at(`${prefix}-data`), at(`${prefix}-copy`)];
    const witness = await startWitness(prefix, tls);
    const env = { DEPUTE_WITNESS: `depute+${witness.url}`, ...credentials() };
    const first = await start(data, env);
    await revokeOne(first);
    const record = await untilWitnessed(witness, principal(), 1);
    expect(record.platform).toBe(principal());
    expect(isSigned(record.logHead)).toBe(true);
    expect(isSigned({ ...record.logHead, treeSize: "2" })).toBe(false);
    await first.stop();
    cpSync(data, copy, { recursive: true });

    const second = await start(data, env);
    await revokeOne(second);
    await untilWitnessed(witness, principal(), 2);
    await witness.stop();
    // The platform goes on without its witness, and publishes what happened meanwhile.
    await revokeOne(second);
    const down = await refusedStart(copy, env);
    expect(down).toMatchObject({ code: 1, out: "" });
    expect(down.err).toMatch(/^depute: DEPUTE_WITNESS: \S+ \(revocations\) cannot be read: .*ECONNREFUSED/);
    expect(down.err.trim().split("\n")).toHaveLength(1);
    await witness.start();
    await untilWitnessed(witness, principal(), 3);
    await second.stop();

    const old = await refusedStart(copy, env);
    expect(old).toMatchObject({ code: 1, out: "" });
    expect(old.err).toMatch(
      /^depute: the data is an old copy: the revocation log does not go on from the head/,
    );
    expect(old.err).toContain("let an operator of the witness delete the platform's record");
    const other = await refusedStart(at(`${prefix}-other`), env);
    expect(other.err).toContain("is not a head of this platform's revocation log");
    await untilWitnessed(witness, principal(), 3);

    expect(await witness.curl("oscar", "DeleteWitnessedPlatform", { platform: principal() })).toEqual({
      deleted: true,
    });
    await start(copy, env);
    await untilWitnessed(witness, principal(), 1);
  },
  LONG,
);

describe("a witness on a real socket", () => {
  test(
    "refuses strangers, forged heads and heads that go back; auditors read",
    async () => {
      const witness = await startWitness("refusing", true);
      const env = { DEPUTE_WITNESS: `depute+${witness.url}`, ...KINDS[0]?.credentials() };
      const platform = await start(at("refused-data"), env);
      await revokeOne(platform);
      const { logHead } = await untilWitnessed(witness, "platform-1", 1);
      const publish = async (caller: keyof typeof SECRETS, body: object) => {
        const { details } = await witness.curl(caller, "PublishLogHead", body);
        return details?.map(({ debug }: { debug: { reason?: string } }) => debug.reason)[0];
      };
      const forged = { ...logHead, treeSize: "9" };
      expect(await publish("platform-1", { logHead: forged, firstSize: "1" })).toBe("SIGNATURE_INVALID");
      const early = await platform.run(["log", "head", "-o", "json"]);
      const own = JSON.parse(early.out).head ?? JSON.parse(early.out);
      expect(await publish("platform-1", { logHead: own })).toBeUndefined();
      expect(await publish("ann", { logHead: own })).toBe("CALLER_NOT_ALLOWED");
      await revokeOne(platform);
      await untilWitnessed(witness, "platform-1", 2);
      expect(await publish("platform-1", { logHead: own })).toBe("LOG_HEAD_OLDER");
      const list = await witness.curl("ann", "ListWitnessedPlatforms", {});
      expect(list.platforms).toEqual([await witness.record("platform-1")]);
      expect((await witness.curl("platform-1", "ListWitnessedPlatforms", {})).code).toBe("permission_denied");
      expect((await witness.curl("platform-1", "GetWitnessedPlatform", { platform: "ann" })).code).toBe(
        "not_found",
      );
      expect((await witness.curl("platform-1", "GetWitnessedPlatform", {})).platform.platform).toBe(
        "platform-1",
      );
    },
    LONG,
  );

  test.each([
    ["a wrong secret", { DEPUTE_WITNESS_TOKEN: "wrong" }, /cannot be read: .*unauthenticated/],
    [
      "a secret without the role",
      { DEPUTE_WITNESS_TOKEN: SECRETS.oscar },
      /cannot be written: .*roles platform/,
    ],
    ["an unknown authority", { DEPUTE_WITNESS_CA_FILE: "" }, /cannot be read: .*certificate/],
  ])(
    "is not used with %s",
    async (name, change, reason) => {
      const witness = await startWitness(name.replaceAll(" ", "-"), true);
      const env = { DEPUTE_WITNESS: `depute+${witness.url}`, DEPUTE_WITNESS_CA_FILE: at("certs/ca.pem") };
      const refused = await refusedStart(at(`${name}-data`), {
        ...env,
        DEPUTE_WITNESS_TOKEN: SECRETS["platform-1"],
        ...change,
      });
      expect(refused).toMatchObject({ code: 1, err: expect.stringMatching(reason) });
    },
    LONG,
  );
});

test(
  "a platform does not start with a head that its witness forged",
  async () => {
    // A server of node:http, in place of another Depute.
    let record: object = {};
    const server = createServer((request, response) => {
      request.resume();
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ platform: record }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    cleanUps.push(async () => server.close());
    const { port } = server.address() as AddressInfo;
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const { x: log = "" } = publicKey.export({ format: "jwk" });
    const headTime = "2026-01-01T00:00:00.000Z";
    const root = Buffer.alloc(32);
    const text = `{"log":"${log}","rootHash":"${root.toString("base64url")}","time":${Date.parse(headTime)},"treeSize":0}`;
    const signature = sign(null, Buffer.from(`delegateos-log-head-v1\0${text}`), privateKey).toString(
      "base64",
    );
    record = {
      platform: "p",
      logHead: { log, treeSize: "0", rootHash: root.toString("base64"), headTime, signature },
    };
    const refused = await refusedStart(at("forged-data"), {
      DEPUTE_WITNESS: `depute+http://127.0.0.1:${port}`,
    });
    expect(refused).toMatchObject({
      ...{ code: 1, out: "" },
      err: expect.stringContaining("is not a head of this platform's transparency log"),
    });
  },
  LONG,
);
