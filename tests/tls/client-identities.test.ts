import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { request as requestHttps } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DevelopmentAuthority, type Identity } from "@depute/service/development-certificates";
import * as grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startApart, startPlatform } from "../gateway/platform.ts";

const PATH = "/depute.registry.v1.AgentService/ListAgents";
const NEKTE = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "nekte.discover", params: { level: 0 } });
const MAPPED = "spiffe://example.org/worker";

let folder: string;
let flags: string[];
let authority: DevelopmentAuthority;
/** The client certificates, by their purpose in the tests. */
let clients: Record<"mapped" | "unmapped" | "plain" | "bare" | "two" | "imitating" | "foreign", Identity>;

const save = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-client-identities-"));
  const years = [new Date("2026-01-01"), new Date("2126-01-01")] as const;
  authority = await DevelopmentAuthority.create(...years);
  const stranger = await DevelopmentAuthority.create(...years);
  const server = await authority.issue({ hosts: ["127.0.0.1", "localhost"] });
  clients = {
    mapped: await authority.issue({ uris: [MAPPED] }),
    unmapped: await authority.issue({ uris: ["spiffe://example.org/other"] }),
    plain: await authority.issue({ hosts: ["worker"] }),
    bare: await authority.issue({}),
    two: await authority.issue({ uris: [MAPPED, "spiffe://example.org/other"] }),
    imitating: await authority.issue({ uris: [`https://a.example/, URI:${MAPPED}, DNS:b`] }),
    foreign: await stranger.issue({ uris: [MAPPED] }),
  };
  const certificates = [{ spiffeId: MAPPED, principal: "worker", organization: "acme" }];
  flags = [
    ...["--tls-cert-file", save("server.pem", server.certificate)],
    ...["--tls-key-file", save("server.key", server.key)],
    ...["--tls-ca-file", save("ca.pem", authority.certificate)],
    ...["--tls-client-ca-file", join(folder, "ca.pem"), "--tls-client-auth", "optional"],
    ...["--identities-file", save("identities.json", JSON.stringify({ certificates }))],
  ];
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each([
  ["one process", startPlatform],
  ["a gateway apart from the services", startApart],
])("a client certificate, at %s where credentials are required", (_, start) => {
  let platform: { url: string; stop(): Promise<void> };
  beforeAll(async () => {
    platform = await start(["--auth", "required", ...flags]);
  }, 60_000);
  afterAll(() => platform.stop());

  test.each<[string, keyof typeof clients | "none", string]>([
    ["with a mapped SPIFFE id counts", "mapped", ""],
    ["with another SPIFFE id is refused", "unmapped", "not_mapped"],
    ["without a SPIFFE id is refused", "plain", "no_spiffe_id"],
    ["without any alternative name is refused", "bare", "no_spiffe_id"],
    ["with two ids is refused", "two", "no_spiffe_id"],
    ["with a name that imitates a list is refused", "imitating", "no_spiffe_id"],
    ["of another authority is refused", "foreign", "no_spiffe_id"],
    ["that is absent leaves no credentials", "none", "credentials are required"],
  ])("%s", async (_name, name, fault) => {
    const client = name === "none" ? undefined : clients[name];
    const outcomes = [
      await overHttp1(platform.url, PATH, "{}", client),
      await overHttp2(platform.url, PATH, "{}", client),
      await overHttp1(platform.url, "/nekte/absent", NEKTE, client),
    ];
    for (const { status, body } of outcomes) {
      if (fault === "") expect(status).not.toBe(401);
      else expect([status, body]).toEqual([401, expect.stringContaining(fault)]);
    }
    expect(await overGrpc(platform.url, client)).toBe(
      fault === "" ? grpc.status.OK : grpc.status.UNAUTHENTICATED,
    );
  });

  test("is ignored beside other credentials, which have to be valid", async () => {
    const wrong = { authorization: "Bearer wrong" };
    const { status } = await overHttp1(platform.url, PATH, "{}", clients.mapped, wrong);
    expect(status).toBe(401);
  });

  test("is not accepted from a header of the client", async () => {
    const forged = { "depute-client-certificate": MAPPED };
    expect((await overHttp1(platform.url, PATH, "{}", undefined, forged)).status).toBe(401);
    expect((await overHttp1(platform.url, "/nekte/absent", NEKTE, undefined, forged)).status).toBe(401);
  });
});

interface Outcome {
  readonly status: number;
  readonly body: string;
}

function tlsOf(client: Identity | undefined) {
  const ca = readFileSync(join(folder, "ca.pem"), "utf8");
  return { ca, ...(client && { cert: client.certificate, key: client.key }) };
}

function overHttp1(
  url: string,
  path: string,
  body: string,
  client: Identity | undefined,
  more: Record<string, string> = {},
): Promise<Outcome> {
  const headers = { "content-type": "application/json", ...more };
  return new Promise((resolve, reject) => {
    const sent = requestHttps(`${url}${path}`, { method: "POST", headers, agent: false, ...tlsOf(client) });
    sent.on("error", reject);
    sent.on("response", (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, body: text }));
    });
    sent.end(body);
  });
}

async function overHttp2(
  url: string,
  path: string,
  body: string,
  client: Identity | undefined,
): Promise<Outcome> {
  const session: ClientHttp2Session = connectHttp2(url, tlsOf(client));
  try {
    return await new Promise((resolve, reject) => {
      session.on("error", reject);
      const stream = session.request({
        ":method": "POST",
        ":path": path,
        "content-type": "application/json",
      });
      let status = 0;
      let text = "";
      stream.on("response", (headers) => {
        status = Number(headers[":status"]);
      });
      stream.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      stream.on("error", reject);
      stream.on("end", () => resolve({ status, body: text }));
      stream.end(body);
    });
  } finally {
    session.close();
  }
}

/** Returns the status code of ListAgents by @grpc/grpc-js. */
function overGrpc(url: string, client: Identity | undefined): Promise<number> {
  const { ca, cert, key } = tlsOf(client);
  const pem = (text: string | undefined) => (text === undefined ? null : Buffer.from(text));
  const credentials = grpc.credentials.createSsl(pem(ca), pem(key), pem(cert));
  const caller = new grpc.Client(new URL(url).host, credentials);
  const asBytes = (value: Buffer): Buffer => value;
  return new Promise((resolve) => {
    const options = { deadline: Date.now() + 10_000 };
    caller.makeUnaryRequest(PATH, asBytes, asBytes, Buffer.alloc(0), options, (error) => {
      caller.close();
      resolve(error?.code ?? grpc.status.OK);
    });
  });
}
