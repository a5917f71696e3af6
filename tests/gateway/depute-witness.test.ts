import { execFile } from "node:child_process";
import { createHash, createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { SettingsError } from "@depute/service";
import { DevelopmentAuthority } from "@depute/service/development-certificates";
import { freePorts } from "depute/ports";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { startPlatform, type TestPlatform } from "./platform.ts";

const LONG = 300_000;
const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "depute-by-depute-"));
const at = (name: string) => join(folder, name);

/** The secrets of callers at the witness, with their roles there. */
const SECRETS = { "platform-1": "secret-of-platform-1", ann: "secret-of-ann", oscar: "secret-of-oscar" };
const ROLES = { "platform-1": "platform", ann: "auditor", oscar: "operator" };
type Caller = keyof typeof SECRETS;
const holder = generateKeypair(engine);

beforeAll(async () => {
  const authority = await DevelopmentAuthority.create(
    new Date(Date.now() - 60_000),
    new Date(Date.now() + 9e7),
  );
  const server = await authority.issue({ hosts: ["127.0.0.1"] });
  const save = (name: string, text: string) => writeFileSync(at(name), `${text}\n`, { mode: 0o600 });
  save("ca.pem", authority.certificate);
  save("server.pem", server.certificate);
  save("server.key", server.key);
  save("token.secret", SECRETS["platform-1"]);
  save("witness.key", Buffer.from(holder.privateKey).toString("base64url"));
  const entries = Object.entries(SECRETS).map(([principal, secret]) => ({
    ...{ principal, roles: [ROLES[principal as Caller]] },
    sha256: createHash("sha256").update(secret).digest("hex"),
  }));
  save(
    "credentials.json",
    JSON.stringify([...entries, { principal: holder.principal.id, roles: ["platform"] }]),
  );
});

afterEach(() => vi.unstubAllEnvs());
const running: { stop(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const each of running.splice(0).reverse()) await each.stop();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function start(dataDir: string, flags: readonly string[]): Promise<TestPlatform> {
  const platform = await startPlatform(flags, { dataDir });
  running.push(platform);
  return platform;
}

/** Stops a platform now, so that `afterEach` does not stop it again. */
async function stop(platform: { stop(): Promise<unknown> }): Promise<void> {
  running.splice(running.indexOf(platform), 1);
  await platform.stop();
}

/** The Depute that serves as the witness. It has one address across its restarts. */
async function witnessAt(name: string, isTls: boolean) {
  const [port = 0] = await freePorts(1);
  const url = `${isTls ? "https" : "http"}://127.0.0.1:${port}`;
  const tls = ["--tls-cert-file", at("server.pem"), "--tls-key-file", at("server.key")];
  const flags = [
    ...["--auth", "required", "--credentials-file", at("credentials.json")],
    ...["--gateway-port", String(port), ...(isTls ? tls : [])],
  ];
  /** Calls by curl. Returns the document, also of a refusal. */
  const curl = async (caller: Caller, method: string, body: object) => {
    const headers = { authorization: `Bearer ${SECRETS[caller]}`, "content-type": "application/json" };
    const { stdout } = await run("curl", [
      ...["--silent", "--show-error", "--cacert", at("ca.pem"), "--data", JSON.stringify(body)],
      ...Object.entries(headers).flatMap(([header, value]) => ["--header", `${header}: ${value}`]),
      `${url}/depute.verifier.v1.WitnessService/${method}`,
    ]);
    return JSON.parse(stdout);
  };
  return {
    url,
    start: () => start(at(name), flags),
    curl,
    /** Reads the record of a platform as an auditor. */
    record: async (platform: string) => (await curl("ann", "GetWitnessedPlatform", { platform })).platform,
    /** Publishes a head. Returns the reason of the refusal. */
    publish: async (caller: Caller, body: object) =>
      (await curl(caller, "PublishLogHead", body)).details?.[0]?.debug?.reason as string | undefined,
  };
}
type WitnessAt = Awaited<ReturnType<typeof witnessAt>>;

async function revokeOne(platform: TestPlatform): Promise<void> {
  const call = async (method: string, body: object) => {
    const answer = await platform.post(`/depute.tokens.v1.${method}`, body);
    const document = (await answer.json()) as { revocationId?: string };
    expect(answer.status, JSON.stringify(document)).toBe(200);
    return document;
  };
  const { revocationId } = await call("TokenService/MintToken", {
    ...{ requestId: crypto.randomUUID(), delegatee: generateKeypair(engine).principal.id },
    ...{
      capabilities: [{ namespace: "llm", action: "classify", resource: "*" }],
      maxBudgetMicrocents: "1000",
    },
    contractId: "ct_000000000000",
  });
  await call("RevocationService/RevokeMintedToken", { revocationId, scope: "REVOCATION_SCOPE_CHAIN" });
}

/** Waits until the witness has the heads of both logs at a size. Returns the witness's record of the platform. */
const untilWitnessed = (witness: WitnessAt, platform: string, size: number) =>
  vi.waitFor(
    async () => {
      const record = await witness.record(platform);
      expect(record?.logHead?.treeSize).toBe(String(size));
      expect(record?.revocationCheckpoint?.sequence).toBe(String(size));
      return record;
    },
    { timeout: 60_000, interval: 250 },
  );

/** The signed text of a head, as the contract states it. */
function textOf({ log, treeSize, rootHash, headTime }: Record<string, string>): Buffer {
  const root = Buffer.from(rootHash ?? "", "base64").toString("base64url");
  const text = `{"log":"${log}","rootHash":"${root}","time":${Date.parse(headTime ?? "")},"treeSize":${treeSize}}`;
  return Buffer.from(`delegateos-log-head-v1\0${text}`);
}

/** Checks the signature of a head with node:crypto alone. */
function isSigned(head: Record<string, string>): boolean {
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: head.log ?? "" }, format: "jwk" });
  return verify(null, textOf(head), key, Buffer.from(head.signature ?? "", "base64"));
}

const WITH_CREDENTIAL = ["--witness-ca-file", at("ca.pem")];
const WITH_KEY = ["--witness-key-file", at("witness.key")];

test.each([
  ["over TLS with a credential", true, "platform-1", WITH_CREDENTIAL],
  ["with a holder key", false, holder.principal.id, WITH_KEY],
])(
  "another platform as witness, %s, notices an older copy of the data folder",
  async (name, isTls, principal, credentials) => {
    if (credentials === WITH_CREDENTIAL) vi.stubEnv("DEPUTE_WITNESS_TOKEN_FILE", at("token.secret"));
    const prefix = name.replaceAll(" ", "-");
    const [data, copy] = [at(`${prefix}-data`), at(`${prefix}-copy`)];
    const witness = await witnessAt(prefix, isTls);
    const other = await witness.start();
    const flags = ["--witness", `depute+${witness.url}`, ...credentials];

    const first = await start(data, flags);
    await revokeOne(first);
    const record = await untilWitnessed(witness, principal, 1);
    expect(record.platform).toBe(principal);
    expect(isSigned(record.logHead)).toBe(true);
    expect(isSigned({ ...record.logHead, treeSize: "2" })).toBe(false);
    await stop(first);
    cpSync(data, copy, { recursive: true });

    const second = await start(data, flags);
    await revokeOne(second);
    await untilWitnessed(witness, principal, 2);
    await stop(other);
    // The platform goes on without its witness, and publishes later what happened meanwhile.
    await revokeOne(second);
    await expect(start(copy, flags)).rejects.toThrow(
      /^DEPUTE_WITNESS: \S+ \(revocations\) cannot be read: .*(ECONNREFUSED|unavailable)/,
    );
    const again = await witness.start();
    await untilWitnessed(witness, principal, 3);
    await stop(second);

    const refused = start(copy, flags);
    await expect(refused).rejects.toThrow(SettingsError);
    await expect(refused).rejects.toThrow(
      /^the data is an old copy: the revocation log does not continue .* let an operator of the witness delete the platform's record$/,
    );
    await expect(start(at(`${prefix}-other`), flags)).rejects.toThrow(
      "is not a head of this platform's revocation log",
    );
    await untilWitnessed(witness, principal, 3);

    const request = { platform: principal };
    expect(await witness.curl("oscar", "DeleteWitnessedPlatform", request)).toEqual({ deleted: true });
    await start(copy, flags);
    await untilWitnessed(witness, principal, 1);
    expect(again.url).toBe(witness.url);
  },
  LONG,
);

test(
  "a witness refuses strangers, forged heads and older heads; auditors can read",
  async () => {
    const witness = await witnessAt("refusing", true);
    await witness.start();
    const secret = ["--witness-token", SECRETS["platform-1"]];
    const flags = ["--witness", `depute+${witness.url}`, ...WITH_CREDENTIAL, ...secret];
    const platform = await start(at("refused-data"), flags);
    await revokeOne(platform);
    const { logHead } = await untilWitnessed(witness, "platform-1", 1);
    expect(
      await witness.publish("platform-1", { logHead: { ...logHead, treeSize: "9" }, firstSize: "1" }),
    ).toBe("SIGNATURE_INVALID");
    expect(await witness.publish("platform-1", { logHead })).toBeUndefined();
    expect(await witness.publish("ann", { logHead })).toBe("CALLER_NOT_ALLOWED");
    await revokeOne(platform);
    const record = await untilWitnessed(witness, "platform-1", 2);
    expect(await witness.publish("platform-1", { logHead })).toBe("LOG_HEAD_OLDER");
    expect((await witness.curl("ann", "ListWitnessedPlatforms", {})).platforms).toEqual([record]);
    expect((await witness.curl("platform-1", "ListWitnessedPlatforms", {})).code).toBe("permission_denied");
    const foreign = await witness.curl("platform-1", "GetWitnessedPlatform", { platform: "ann" });
    expect(foreign.code).toBe("not_found");
    expect((await witness.curl("platform-1", "GetWitnessedPlatform", {})).platform).toEqual(record);

    const connection = ["--witness", `depute+${witness.url}`, "--witness-ca-file", at("ca.pem")];
    await expect(start(at("wrong"), [...connection, "--witness-token", "wrong"])).rejects.toThrow(
      /cannot be read: .*unauthenticated/,
    );
    await expect(start(at("no-role"), [...connection, "--witness-token", SECRETS.oscar])).rejects.toThrow(
      /cannot be written: .*none of the roles platform/,
    );
    const unknown = ["--witness", `depute+${witness.url}`, "--witness-token", SECRETS["platform-1"]];
    await expect(start(at("unknown"), unknown)).rejects.toThrow(/cannot be read: .*certificate/);
  },
  LONG,
);

test(
  "a platform does not start with a head that its witness forged",
  async () => {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const { x: log = "" } = publicKey.export({ format: "jwk" });
    const rootHash = Buffer.alloc(32).toString("base64");
    const head = { log, treeSize: "0", rootHash, headTime: "2026-01-01T00:00:00.000Z" };
    const signature = sign(null, textOf(head), privateKey).toString("base64");
    // A server of node:http in place of another Depute.
    const server = createServer((request, response) => {
      request.resume();
      const body = JSON.stringify({ platform: { platform: "p", logHead: { ...head, signature } } });
      response.writeHead(200, { "content-type": "application/json" }).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await expect(start(at("forged"), ["--witness", `depute+http://127.0.0.1:${port}`])).rejects.toThrow(
      "is not a head of this platform's transparency log",
    );
    server.close();
    server.closeAllConnections();
  },
  LONG,
);

test(
  "heads continue after a rotation of the root key, also across a restart",
  async () => {
    vi.stubEnv("DEPUTE_WITNESS_TOKEN_FILE", at("token.secret"));
    const data = at("rotated-data");
    const witness = await witnessAt("rotated", true);
    await witness.start();
    const flags = ["--witness", `depute+${witness.url}`, ...WITH_CREDENTIAL];
    const first = await start(data, flags);
    await revokeOne(first);
    const before = await untilWitnessed(witness, "platform-1", 1);
    const rotation = { requestId: "rotate", retireNow: true };
    const answer = await first.post("/depute.tokens.v1.RootKeyService/RotateRootKey", rotation);
    const { key } = (await answer.json()) as { key: { principal: string } };
    await revokeOne(first);
    const after = await untilWitnessed(witness, "platform-1", 2);
    expect(after.revocationCheckpoint.signer).toBe(key.principal);
    expect(before.revocationCheckpoint.signer).not.toBe(key.principal);
    await stop(first);
    const second = await start(data, flags);
    await revokeOne(second);
    await untilWitnessed(witness, "platform-1", 3);
    const { signature } = after.revocationCheckpoint;
    const forged = { ...before.revocationCheckpoint, sequence: "4", signature };
    expect(await witness.publish("platform-1", { revocationCheckpoint: forged })).toBe("SIGNATURE_INVALID");
  },
  LONG,
);

/** Verifies the signature of a checkpoint's root_change with Python's hashlib and node:crypto alone. */
async function isRootChangeSigned(checkpoint: Record<string, string>): Promise<boolean> {
  const { head, rootChange, sequence, signTime, signer = "", rootChangeSignature = "" } = checkpoint;
  const text = `{"head":"${head}","rootChange":${rootChange},"sequence":${sequence},"signedAt":"${signTime}","signer":"${signer}"}`;
  const program =
    "import hashlib, sys; print(hashlib.blake2b(b'delegateos-checkpoint-v1\\0' + sys.argv[1].encode(), digest_size=32).hexdigest())";
  const { stdout } = await run("python3", ["-c", program, text]);
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: signer }, format: "jwk" });
  return verify(null, Buffer.from(stdout.trim(), "hex"), key, Buffer.from(rootChangeSignature, "base64"));
}

test(
  "a copy from before a change of the root keys does not start, although no entry of a log is missing",
  async () => {
    vi.stubEnv("DEPUTE_WITNESS_TOKEN_FILE", at("token.secret"));
    const [data, before, copy] = [at("retired-data"), at("retired-before"), at("retired-copy")];
    const witness = await witnessAt("retired", true);
    await witness.start();
    const flags = ["--witness", `depute+${witness.url}`, ...WITH_CREDENTIAL];
    const checkpointOf = async () => (await witness.record("platform-1"))?.revocationCheckpoint;
    /** Changes the root keys, and waits until the witness knows it. Stops the platform. */
    const change = async (method: string, request: object) => {
      const platform = await start(data, flags);
      const { rootChange } = await checkpointOf();
      const answer = await platform.post(`/depute.tokens.v1.RootKeyService/${method}`, request);
      const document = (await answer.json()) as { replaced?: { principal: string } };
      expect(answer.status, JSON.stringify(document)).toBe(200);
      const isKnown = async () =>
        expect(Number((await checkpointOf()).rootChange)).toBeGreaterThan(Number(rootChange));
      await vi.waitFor(isKnown, { timeout: 60_000, interval: 250 });
      await stop(platform);
      return document.replaced?.principal;
    };

    await stop(await start(data, flags));
    cpSync(data, before, { recursive: true });
    const principal = await change("RotateRootKey", { requestId: "rotate", overlap: "3600s" });
    cpSync(data, copy, { recursive: true });
    await change("RetireRootKey", { principal });

    const checkpoint = { sequence: "0", head: "", ...(await checkpointOf()) };
    expect(checkpoint.sequence).toBe("0");
    expect(await isRootChangeSigned(checkpoint)).toBe(true);
    expect(await isRootChangeSigned({ ...checkpoint, rootChange: "9" })).toBe(false);
    await expect(start(copy, flags)).rejects.toThrow(
      /^the data is an old copy: its root keys are older than the head at .* states, so a retired root would count again/,
    );
    await expect(start(before, flags)).rejects.toThrow(
      /is not a head of this platform's revocation log; .* Or, if a rotation of the root key is missing here, restore the newer data/,
    );
    await start(data, flags);
  },
  LONG,
);
