import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect as http2Connect } from "node:http2";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Bus } from "@depute/bus";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, test } from "vitest";
import { type CommonSettings, commonSettings } from "../common-settings.ts";
import { hostServices } from "../host.ts";
import { createLogger } from "../log.ts";
import { defineService, type ServiceModule } from "../module.ts";
import type { ModuleName } from "../names.ts";
import { readSettings } from "../settings.ts";
import { EchoService, echoClient, echoRoutes } from "../testing/echo.ts";
import { DevelopmentAuthority, type Identity } from "./development-certificates.ts";

const run = promisify(execFile);
const bus: Bus = { publish() {}, subscribe: () => () => {}, close: async () => {} };
const stopping: (() => Promise<unknown>)[] = [];
let folder: string;
let lines: { level: string; msg: string }[];
let authority: DevelopmentAuthority;
let named: Identity;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-sockets-"));
  authority = await DevelopmentAuthority.create(new Date(Date.now() - 60_000), new Date(Date.now() + 9e6));
  named = await authority.issue({ hosts: ["localhost", "127.0.0.1"] });
  writeFileSync(join(folder, "ca.pem"), authority.certificate);
});
beforeEach(() => {
  lines = [];
});
afterEach(async () => {
  for (const stop of stopping.splice(0).reverse()) await stop();
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Starts a service that echoes its requests, with these flags of the process. */
async function start(name: ModuleName, flags: readonly string[], module?: ServiceModule) {
  const common = readSettings(commonSettings, flags, { name: "test" }) as CommonSettings;
  const ports = { gatewayPort: 0, registryPort: 0, tasksPort: 0, tokensPort: 0, drainTimeout: 50 };
  const echo = defineService({
    ...{ name, settings: {}, descriptors: [EchoService] },
    start: async () => ({ routes: echoRoutes({ started: 0, ended: [] }), async close() {} }),
  });
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const host = await hostServices({
    modules: [{ module: module ?? echo, settings: {}, listen: true }],
    common: { ...common, ...ports, dataDir: join(folder, "data") },
    bus,
    log: createLogger({ level: "warn", name: "test", destination }),
  });
  stopping.push(() => host.stop());
  return host.urls[name] ?? "";
}

function tls(name: string, identity: Identity): string[] {
  const [cert, key] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
  writeFileSync(cert, identity.certificate);
  writeFileSync(key, identity.key);
  return ["--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-file", join(folder, "ca.pem")];
}

/** Returns what `openssl s_client` prints about a handshake. */
async function openssl(url: string, ...flags: string[]): Promise<string> {
  const at = ["s_client", "-connect", new URL(url).host, "-CAfile", join(folder, "ca.pem"), ...flags];
  const ended = run("openssl", at, { timeout: 20_000 });
  ended.child.stdin?.end();
  const { stdout, stderr } = await ended.catch((error: { stdout: string; stderr: string }) => error);
  return `${stdout}${stderr}`;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" ? (address?.port ?? 0) : 0;
}

test("openssl agrees on HTTP/2 or HTTP/1.1 by ALPN, and on no TLS below 1.2", async () => {
  const url = await start("tasks", tls("server", named));
  const both = await openssl(url, "-alpn", "h2,http/1.1");
  expect(both).toContain("Verify return code: 0 (ok)");
  expect(both).toContain("ALPN protocol: h2");
  expect(await openssl(url, "-alpn", "http/1.1", "-tls1_2")).toMatch(/Protocol *: TLSv1.2/);
  const old = await openssl(url, "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0");
  expect(old).toMatch(/alert protocol version|no protocols available|unsupported protocol/);
  expect(old).not.toMatch(/Verify return code: 0 \(ok\)[\s\S]*Cipher is [A-Z]/);
});

test("the port of the metrics has TLS, too", async () => {
  const port = await freePort();
  await start("tasks", ["--metrics-port", String(port), ...tls("server", named)]);
  const health = (scheme: string) =>
    run("curl", ["-s", "--cacert", join(folder, "ca.pem"), `${scheme}://127.0.0.1:${port}/livez`, "-f"]);
  await expect(health("https")).resolves.toBeDefined();
  await expect(health("http")).rejects.toBeDefined();
});

test("DEPUTE_SOCKET_DIR replaces the port by a socket, which curl reaches over HTTP/1.1 and HTTP/2", async () => {
  const url = await start("gateway", ["--socket-dir", folder]);
  const path = join(folder, "gateway.sock");
  expect([url, existsSync(path)]).toEqual([`unix:${path}`, true]);
  for (const [flag, version] of [
    ["--http1.1", "1.1"],
    ["--http2-prior-knowledge", "2"],
  ] as const) {
    const args = ["-s", flag, "--unix-socket", path, "http://localhost/livez", "-o", "/dev/null"];
    expect((await run("curl", [...args, "-w", "%{http_code} %{http_version}"])).stdout).toBe(
      `200 ${version}`,
    );
  }
});

test("DEPUTE_MAX_CONNECTION_AGE ends a connection of that age by GOAWAY", async () => {
  const url = await start("tasks", ["--max-connection-age", "200ms"]);
  const session = http2Connect(url);
  stopping.push(async () => session.destroy());
  const code = await new Promise((resolve) => session.once("goaway", resolve));
  expect(code).toBe(0);
});

it.each([
  ["https://depute.example", () => [] as string[], /accepts holder proofs only behind a proxy/],
  ["http://depute.example", () => tls("server", named), /write https/],
  ["https://depute.example", () => tls("server", named), undefined],
])(
  "the log warns at the start about the public URL %s if the listener disagrees",
  async (url, flags, warning) => {
    await start("gateway", ["--public-url", url, ...flags()]);
    const texts = lines.filter(({ msg }) => msg.includes("DEPUTE_PUBLIC_URL")).map(({ msg }) => msg);
    expect(texts).toEqual(warning === undefined ? [] : [expect.stringMatching(warning)]);
  },
);

it.each([
  ["names the host", () => authority.issue({ hosts: ["localhost"] }), true],
  ["names another host", () => authority.issue({ hosts: ["other.example"] }), false],
  ["has a common name and no alternative name", () => commonNameOnly("localhost"), false],
  ["has expired", () => authority.issue({ hosts: ["localhost"] }, PAST), false],
])("a process calls another one whose certificate %s: %s", async (_, issue, isTrusted) => {
  const tasks = await start("tasks", tls("tasks", await issue()));
  const front: ServiceModule = defineService({
    ...{ name: "gateway", settings: {}, descriptors: [EchoService] },
    async start(deps) {
      const client = echoClient(deps.connect("tasks"));
      return {
        routes: (router) => void router.service(EchoService, { unary: (request) => client.unary(request) }),
        async close() {},
      };
    },
  });
  const at = tasks.replace("127.0.0.1", "localhost");
  const ca = ["--tls-ca-file", join(folder, "ca.pem")];
  const url = await start("gateway", ["--tasks-url", at, ...ca], front);
  const answer = echoClient(createConnectTransport({ baseUrl: url, httpVersion: "2" })).unary({
    do: "header",
  });
  if (isTrusted) await expect(answer).resolves.toBeDefined();
  else await expect(answer).rejects.toThrow(/unavailable/i);
});

const PAST = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() - 1000) };

/** Issues a certificate by openssl. The certificate has only a common name, and the processes trust its authority. */
function commonNameOnly(name: string): Identity {
  const path = (file: string) => join(folder, file);
  const openssl = (...args: string[]) => {
    const { status, stderr } = spawnSync("openssl", args, { encoding: "utf8" });
    if (status !== 0) throw new Error(stderr);
  };
  const subject = ["-subj", `/CN=${name}`, "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
  openssl("req", "-x509", ...subject, "-keyout", path("cn.key"), "-out", path("cn.pem"), "-days", "1");
  const identity = {
    certificate: readFileSync(path("cn.pem"), "utf8"),
    key: readFileSync(path("cn.key"), "utf8"),
  };
  // The certificate is its own authority, so that only its name can be at fault.
  writeFileSync(path("ca.pem"), `${authority.certificate}\n${identity.certificate}`);
  return identity;
}
