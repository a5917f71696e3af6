import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { DevelopmentAuthority } from "@depute/service/development-certificates";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";

const LIST = "/depute.registry.v1.AgentService/ListAgents";
const MINT = "/depute.tokens.v1.TokenService/MintToken";
const AUDIENCE = "https://depute.example.org";
const CLIENTS = join(import.meta.dirname, "clients");
const INSTALL_MS = 300_000;

let folder: string;
let platform: TestPlatform;
let issuer: ChildProcess | undefined;
let issuerUrl: string;
/** The files of client certificates, by their meaning. */
const certificates: Record<string, readonly [certificate: string, key: string]> = { none: ["", ""] };

const save = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

/** Starts the issuer of examples/login for these clients. Returns its address. */
async function startIssuer(names: readonly string[]): Promise<string> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  issuer = spawn(process.execPath, ["examples/login/issuer.ts", String(port), AUDIENCE, ...names], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  if (issuer.stdout !== null) await once(issuer.stdout, "data");
  return `http://127.0.0.1:${port}`;
}

/** Returns an access token that the issuer's token endpoint gives to a client. */
async function login(name: string): Promise<string> {
  const answer = await fetch(`${issuerUrl}/token`, {
    method: "POST",
    headers: { authorization: `Basic ${Buffer.from(`${name}:secret-of-${name}`).toString("base64")}` },
    body: new URLSearchParams({ grant_type: "client_credentials", resource: AUDIENCE }),
  });
  const { access_token: token } = (await answer.json()) as { access_token?: string };
  if (token === undefined) throw new Error(`the issuer answers ${answer.status}`);
  return token;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-foreign-clients-"));
  const authority = await DevelopmentAuthority.create(new Date("2026-01-01"), new Date("2126-01-01"));
  const server = await authority.issue({ hosts: ["127.0.0.1", "localhost"] });
  const worker = "spiffe://example.org/worker";
  for (const [name, uris] of [
    ["worker", [worker]],
    ["unmapped", ["spiffe://example.org/other"]],
    ["nameless", []],
  ] as const) {
    const { certificate, key } = await authority.issue(
      uris.length > 0 ? { uris: [...uris] } : { hosts: ["a"] },
    );
    certificates[name] = [save(`${name}.pem`, certificate), save(`${name}.key`, key)];
  }
  issuerUrl = await startIssuer(["ada", "mia", "eve"]);
  const identities = [
    { subject: "ada", principal: "ada@acme", organization: "acme", roles: ["user"] },
    { subject: "mia", principal: "mia@acme", organization: "acme", roles: ["minter"] },
  ];
  const file = {
    issuers: [{ issuer: issuerUrl, audiences: [AUDIENCE], identities }],
    certificates: [{ spiffeId: worker, principal: "worker", roles: ["agent"] }],
  };
  platform = await startPlatform([
    ...["--auth", "required", "--identities-file", save("identities.json", JSON.stringify(file))],
    ...["--tls-cert-file", save("server.pem", server.certificate)],
    ...["--tls-key-file", save("server.key", server.key)],
    ...["--tls-ca-file", save("ca.pem", authority.certificate)],
    ...["--tls-client-ca-file", join(folder, "ca.pem"), "--tls-client-auth", "optional"],
  ]);
}, 60_000);
afterAll(async () => {
  await platform.stop();
  issuer?.kill();
  rmSync(folder, { recursive: true, force: true });
});

/** A stock client: it has no code and no generated code of the platform. */
interface Language {
  readonly name: string;
  readonly isInstalled: boolean;
  /** Builds the client. Returns the command that starts it. */
  build(): readonly string[];
}

const GO_FOLDER = "examples/go/gen/foreign";

const LANGUAGES: readonly Language[] = [
  { name: "Node.js", isInstalled: true, build: () => [process.execPath, join(CLIENTS, "client.cjs")] },
  {
    name: "Python",
    isInstalled: spawnSync("python3", ["-c", "import sys, venv, ensurepip"]).status === 0,
    build() {
      const venv = join(folder, "venv");
      execFileSync("python3", ["-m", "venv", venv]);
      const python = join(venv, "bin/python");
      const install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "grpcio==1.76.0"];
      execFileSync(python, install, { stdio: "inherit" });
      return [python, join(CLIENTS, "client.py")];
    },
  },
  {
    name: "Go",
    isInstalled: spawnSync("go", ["version"]).status === 0,
    build() {
      // The client is built in the example's module, which has the gRPC library, and in a folder that git ignores.
      mkdirSync(GO_FOLDER, { recursive: true });
      copyFileSync(join(CLIENTS, "client.go.txt"), join(GO_FOLDER, "main.go"));
      const program = join(folder, "go-client");
      execFileSync("go", ["build", "-o", program, "./gen/foreign"], { cwd: "examples/go", stdio: "inherit" });
      rmSync(GO_FOLDER, { recursive: true });
      return [program];
    },
  },
];

describe.each(LANGUAGES)("a stock gRPC client in $name", ({ name, isInstalled, build }) => {
  let command: readonly string[] = [];
  beforeAll(() => {
    if (isInstalled) command = build();
    else if (process.env.CI === "true") throw new Error(`${name} is needed`);
    // biome-ignore lint/suspicious/noConsole: a skipped test has to be seen by the person who runs it
    else console.warn(`*** SKIPPED: ${name} is not installed ***`);
  }, INSTALL_MS);

  test.runIf(isInstalled).each<[string, string, string, string, RegExp]>([
    ["a certificate with the role agent", "worker", "", LIST, /^OK/],
    [
      "a certificate without the role minter",
      "worker",
      "",
      MINT,
      /^Permission_?Denied .*none of the roles minter/i,
    ],
    ["a certificate that no principal has", "unmapped", "", LIST, /^Unauthenticated /i],
    ["a certificate without a SPIFFE id", "nameless", "", LIST, /^Unauthenticated .*no SPIFFE id/i],
    ["a login", "none", "ada", LIST, /^OK/],
    ["a login without the role minter", "none", "ada", MINT, /^Permission_?Denied .*roles minter/i],
    ["a login with the role minter, and an empty request", "none", "mia", MINT, /^Invalid_?Argument /i],
    ["a login that no principal has", "none", "eve", LIST, /^Unauthenticated .*no principal/i],
    ["a certificate, and a login that counts in its place", "worker", "mia", MINT, /^Invalid_?Argument /i],
    ["no credentials", "none", "", LIST, /^Unauthenticated .*credentials are required/i],
  ])(
    "with %s",
    async (_, certificate, subject, method, outcome) => {
      const [file = "", key = ""] = certificates[certificate] ?? [];
      const token = subject === "" ? "" : await login(subject);
      const [program = "", ...argv] = command;
      const target = [new URL(platform.url).host, join(folder, "ca.pem"), file, key, token, method];
      const { stdout } = await promisify(execFile)(program, [...argv, ...target], { timeout: 40_000 });
      expect(stdout).toMatch(outcome);
    },
    60_000,
  );
});
