import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { connect as http2Connect, type OutgoingHttpHeaders } from "node:http2";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import * as grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "./platform.ts";

const GET_ISSUER = "/depute.tokens.v1.TokenService/GetIssuer";

let platform: TestPlatform;
let adapter: TestPlatform;
let folder: string;
let tunnel: Server;
beforeAll(async () => {
  platform = await startPlatform();
  adapter = await startPlatform(["--fast-path", "false"]);
  folder = mkdtempSync(join(tmpdir(), "depute-authorities-"));
  tunnel = createServer((socket) => {
    const peer = connect(Number(portOf(platform)), "127.0.0.1");
    socket.pipe(peer).pipe(socket);
    for (const end of [socket, peer]) end.on("error", () => {});
  });
  await new Promise<void>((resolve) => tunnel.listen(join(folder, "depute.sock"), resolve));
});
afterAll(async () => {
  await platform.stop();
  await adapter.stop();
  tunnel.close();
  rmSync(folder, { recursive: true, force: true });
});

function portOf({ url }: TestPlatform): string {
  return new URL(url).port;
}

/** Returns the status of a call with an empty message by a plain gRPC client. */
async function callBy(target: string, options: grpc.ClientOptions = {}): Promise<string> {
  const bytes = { serialize: (value: Buffer) => value, deserialize: (value: Buffer) => value };
  const client = new grpc.Client(target, grpc.credentials.createInsecure(), options);
  try {
    return await new Promise((resolve) => {
      client.makeUnaryRequest(
        GET_ISSUER,
        bytes.serialize,
        bytes.deserialize,
        Buffer.alloc(0),
        { deadline: Date.now() + 10_000 } as never,
        (error: grpc.ServiceError | null) => resolve(grpc.status[error?.code ?? 0] ?? ""),
      );
    });
  } finally {
    client.close();
  }
}

describe.each([
  ["the fast path", () => platform],
  ["the adapter", () => adapter],
])("by %s", (_, at) => {
  test.each([
    ["client-side balancing", (port: string) => `ipv4:127.0.0.1:${port},127.0.0.1:${port}`],
    ["IPv4", (port: string) => `ipv4:127.0.0.1:${port}`],
    ["DNS", (port: string) => `dns:///localhost:${port}`],
  ])("a gRPC client with %s is served", async (_, target) => {
    expect(await callBy(target(portOf(at())))).toBe("OK");
  });

  test.each(["team%2Fsvc", "ipv4:127.0.0.1:1,127.0.0.1:2", "xds.authority,a", "[not-an-address"])(
    "a gRPC client that sends the authority %j is served",
    async (authority) => {
      const options = { "grpc.default_authority": authority };
      expect(await callBy(`127.0.0.1:${portOf(at())}`, options)).toBe("OK");
    },
  );

  test.each(["team%2Fsvc", "a,b", "::::", "localhost:99999"])(
    "an HTTP/2 client that sends the authority %j is answered",
    async (authority) => {
      for (const type of ["application/json", "application/grpc", "application/grpc-web"]) {
        expect([type, await post2(at(), { ":authority": authority, "content-type": type })]).toEqual([
          type,
          200,
        ]);
      }
    },
  );
});

test("a gRPC client is served over a Unix socket", async () => {
  expect(await callBy(`unix:${join(folder, "depute.sock")}`)).toBe("OK");
});

/** Returns the HTTP status of an RPC over HTTP/2. */
async function post2({ url }: TestPlatform, headers: OutgoingHttpHeaders): Promise<number> {
  const session = http2Connect(url);
  try {
    return await new Promise((resolve, reject) => {
      const isJson = headers["content-type"] === "application/json";
      const stream = session.request({ ":method": "POST", ":path": GET_ISSUER, ...headers });
      stream.on("response", (answer) => resolve(Number(answer[":status"])));
      stream.on("error", reject);
      stream.end(isJson ? "{}" : Buffer.alloc(5));
      stream.resume();
    });
  } finally {
    session.destroy();
  }
}

/** Returns the HTTP status of a request over HTTP/1.1 with exactly these headers. */
function ask1(path: string, headers: string[], method = "GET"): Promise<number> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(platform.url);
    const request = httpRequest({ hostname, port, path, method, headers: headers as never, setHost: false });
    request.on("response", (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    request.on("error", reject);
    request.end();
  });
}

const ADDRESSES = [
  "/health",
  "/.well-known/nekte.json",
  "/agenta/offers",
  "/v1/asp/discover",
  "/log/head",
  "/metrics",
];

describe("a page whose name resolves to loopback", () => {
  test.each(ADDRESSES)("reads nothing at %s", async (path) => {
    expect(await ask1(path, ["host", `rebound.example:${portOf(platform)}`])).toBe(403);
    expect(await ask1(path, ["host", `localhost:${portOf(platform)}`])).not.toBe(403);
  });

  test("reads nothing by curl", async () => {
    const status = async (host: string) => {
      const args = [
        "-s",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        "-H",
        `Host: ${host}`,
        `${platform.url}/health`,
      ];
      return (await promisify(execFile)("curl", args)).stdout;
    };
    expect(await status("rebound.example")).toBe("403");
    expect(await status("127.0.0.1")).toBe("200");
  });

  test("opens no WebSocket", async () => {
    const upgrade = ["connection", "upgrade", "upgrade", "websocket", "sec-websocket-version", "13"];
    const key = ["sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="];
    const path = "/v1/asp/sessions/any/ws";
    expect(await ask1(path, ["host", "rebound.example", ...upgrade, ...key])).toBe(403);
    expect(
      await ask1(path, ["host", "localhost", "origin", "https://elsewhere.example", ...upgrade, ...key]),
    ).toBe(403);
  });
});

test("a browser without an origin reads only for the server's own page, or for its user", async () => {
  const site = (value: string) => ask1("/health", ["host", "localhost", "sec-fetch-site", value]);
  expect(await Promise.all(["none", "same-origin", "same-site", "cross-site"].map(site))).toEqual([
    200, 200, 403, 403,
  ]);
});

test("hosts and origins of the settings are served, and NEKTE's virtual hosts", async () => {
  const open = await startPlatform([
    ...["--allowed-hosts", "depute.internal,*.virtual.example"],
    ...["--allowed-origins", "https://app.example"],
    ...["--nekte-hosts", "agents.example"],
    ...["--public-url", "http://depute.example:8080"],
  ]);
  const { port } = new URL(open.url);
  const status = async (host: string, origin?: string) => {
    const args = ["-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", `Host: ${host}`];
    if (origin !== undefined) args.push("-H", `Origin: ${origin}`);
    return (await promisify(execFile)("curl", [...args, `http://127.0.0.1:${port}/health`])).stdout;
  };
  try {
    expect(await status("depute.internal")).toBe("200");
    expect(await status("agent.virtual.example")).toBe("200");
    expect(await status("virtual.example")).toBe("403");
    for (const host of [
      "agents.example",
      "worker.agents.example:8080",
      "worker.depute.example",
      "worker.localhost",
    ])
      expect([host, await status(host)]).toEqual([host, "200"]);
    expect(await status("worker.elsewhere.example")).toBe("403");
    expect(await status("localhost", "https://app.example")).toBe("200");
    expect(await status("localhost", "https://other.example")).toBe("403");
  } finally {
    await open.stop();
  }
});

describe("a repeated credential header", () => {
  test.each(["authorization", "dpop", "x-api-key"])("%s is refused over HTTP/1.1", async (name) => {
    const headers = ["host", "localhost", "content-type", "application/json", "content-length", "0"];
    for (const path of [GET_ISSUER, "/nekte", "/cap/messages"]) {
      expect([path, await ask1(path, [...headers, name, "Bearer a", name, "Bearer b"], "POST")]).toEqual([
        path,
        401,
      ]);
    }
  });

  test.each(["authorization", "dpop", "x-api-key"])("%s is refused over HTTP/2", async (name) => {
    for (const at of [platform, adapter]) expect(await twice(at, name)).toBe("2 401");
  });

  test("gets a gRPC status over gRPC", async () => {
    const grpcType = ["-H", "content-type: application/grpc"];
    const args = [...grpcType, "-H", "authorization: Bearer a", "-H", "authorization: Bearer b", "-d", ""];
    const { stdout } = await promisify(execFile)("curl", [
      ...["-s", "-D", "-", "--http2-prior-knowledge", ...args],
      `${platform.url}${GET_ISSUER}`,
    ]);
    expect(stdout).toMatch(/^HTTP\/2 200/);
    expect(stdout).toContain(`grpc-status: ${grpc.status.UNAUTHENTICATED}`);
  });
});

/** Returns the status of an RPC over HTTP/2 that repeats a header. Node's client cannot send such a request. */
async function twice({ url }: TestPlatform, name: string): Promise<string> {
  const headers = [
    "-H",
    "content-type: application/json",
    "-H",
    `${name}: Bearer a`,
    "-H",
    `${name}: Bearer b`,
  ];
  const quiet = ["-s", "-o", "/dev/null", "-w", "%{http_version} %{http_code}"];
  const args = ["--http2-prior-knowledge", ...quiet, ...headers, "-d", "{}", `${url}${GET_ISSUER}`];
  // curl also fails when a server answers before it reads the body.
  const { stdout } = await promisify(execFile)("curl", args).catch((error: { stdout: string }) => error);
  return stdout;
}
