import type { ClientHttp2Session } from "node:http2";
import { MODULES } from "depute";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type McpPlatform, startPlatform } from "../mcp/platform.ts";
import { introduce } from "./platform.ts";
import { type Ask, overHttp1, overHttp2, type RawAnswer } from "./raw-clients.ts";
import { reasonIn } from "./wire-forms.ts";

/** The limits on request bodies of this test's platform. */
const MAX_BYTES = 1024;
const TIMEOUT_MS = 500;
const TOO_LONG = Buffer.alloc(MAX_BYTES + 100, " ");
const BEGUN = Buffer.from('{"a":');

let platform: McpPlatform;
let asks: Record<string, Ask>;
let session: ClientHttp2Session;

beforeAll(async () => {
  // No server listens at this address. The test needs none, because the platform refuses the bodies before it
  // calls the address.
  platform = await startPlatform({ away: { http: { url: "http://127.0.0.1:9/" }, map: {} } }, [
    ...["--max-body-bytes", String(MAX_BYTES)],
    ...["--max-request-bytes", String(MAX_BYTES)],
    ...["--body-timeout", `${TIMEOUT_MS}ms`],
  ]);
  const two = overHttp2(platform.url);
  session = two.session;
  asks = { "HTTP/1.1": overHttp1(platform.url), "HTTP/2": two.ask };
});
afterAll(async () => {
  session.close();
  await platform.stop();
});

/** The bodies that the platform refuses, with the status and the reason of each refusal. */
const REFUSALS = [
  ["oversize", 413, "LIMIT_EXCEEDED", { body: TOO_LONG }],
  ["endless", 408, "DEADLINE_EXCEEDED", { body: BEGUN, endless: true }],
  ["of another media type", 415, "INVALID_REQUEST", { body: BEGUN, type: "text/csv" }],
] as const;

const VERSIONS = ["HTTP/1.1", "HTTP/2"];

const TABLE = VERSIONS.flatMap((version) =>
  REFUSALS.map(([name, ...rest]) => [name, version, ...rest] as const),
);

describe("the declared routes", () => {
  test.each(TABLE)("%s over %s: %i", async (_, version, status, reason, request) => {
    const taking = platform.routes.flatMap(({ methods, path, takes }) =>
      takes === undefined ? [] : methods.map((method) => ({ method, path, takes })),
    );
    expect(taking.length).toBeGreaterThan(20);
    const answers = await few(taking, async ({ method, path, takes }) => {
      const type = "type" in request ? request.type : (takes[0] ?? "");
      // MCP answers only clients that accept both types.
      const headers = { "content-type": type, accept: "application/json, text/event-stream" };
      const answer = await ask(version, { method, path: filled(path), headers, ...request });
      return [`${method} ${path}`, [answer.status, reasonIn(path, answer)]] as const;
    });
    expect(answers).toEqual(
      Object.fromEntries(taking.map(({ method, path }) => [`${method} ${path}`, [status, reason]])),
    );
  });

  test.each(VERSIONS)("HEAD over %s is GET without its body", async (version) => {
    const readable = platform.routes.filter(({ methods }) => methods.includes("GET"));
    expect(readable.length).toBeGreaterThan(20);
    const statusOf = async (method: string) =>
      Object.fromEntries(
        await Promise.all(
          readable.map(async ({ path }) => {
            const headers = { accept: "application/json" };
            const answer = await ask(version, { method, path: filled(path), headers });
            return [path, { status: answer.status, names: headerNames(answer) }] as const;
          }),
        ),
      );
    expect(await statusOf("HEAD")).toEqual(await statusOf("GET"));
  });

  test.each(VERSIONS)("HEAD over %s has no byte of a body", async (version) => {
    for (const path of ["/health", "/metrics", "/cap/error-codes", "/index.json", "/log/head", "/nowhere"]) {
      const { bytes } = await ask(version, { method: "HEAD", path });
      expect([path, bytes.length]).toEqual([path, 0]);
    }
  });

  test.each(VERSIONS)("HEAD over %s of a stream of events is answered at once", async (version) => {
    await introduce(platform, "listener");
    const head = { method: "HEAD", path: "/cap/inbox/listener", headers: { accept: "text/event-stream" } };
    const answer = await ask(version, head);
    expect([answer.status, answer.headers["content-type"]]).toEqual([200, "text/event-stream"]);
    expect(answer.bytes.length).toBe(0);
    const refused = await ask(version, { ...head, path: "/cap/inbox/unknown" });
    expect([refused.status, refused.headers["content-type"]]).toEqual([404, "application/json"]);
  });

  test.each(VERSIONS)("Allow over %s names HEAD beside GET", async (version) => {
    const answer = await ask(version, { method: "PATCH", path: "/cap/agents" });
    expect([answer.status, answer.headers.allow]).toEqual([405, "GET, HEAD, POST"]);
  });
});

/**
 * Methods whose request is a single message. Streams of requests are left out, because the client decides when
 * a stream ends.
 */
const METHODS = MODULES.gateway.descriptors
  .flatMap(({ methods }) => methods)
  .filter(({ methodKind }) => methodKind === "unary" || methodKind === "server_streaming")
  .map(({ parent, name, methodKind }) => ({ path: `/${parent.typeName}/${name}`, methodKind }));
const UNARY = METHODS.filter(({ methodKind }) => methodKind === "unary");
const STREAMS = METHODS.filter(({ methodKind }) => methodKind !== "unary");

describe("RPCs", () => {
  test.each(TABLE)("by Connect: %s over %s: %i", async (_, version, status, reason, request) => {
    const answers = await few(UNARY, async ({ path }) => {
      const type = "type" in request ? request.type : "application/json";
      const answer = await ask(version, {
        ...{ method: "POST", path, headers: { "content-type": type } },
        ...request,
      });
      return [path, [answer.status, reasonIn(path, answer)]] as const;
    });
    expect(answers).toEqual(Object.fromEntries(UNARY.map(({ path }) => [path, [status, reason]])));
  });

  const GRPC_STATUS = { oversize: "8", endless: "4" };
  test.each(["oversize", "endless"] as const)("by gRPC: %s", async (kind) => {
    const answers = await few(METHODS, async ({ path }) => {
      const prefix = Buffer.alloc(5);
      prefix.writeUInt32BE(kind === "oversize" ? TOO_LONG.length : 100, 1);
      const body = kind === "oversize" ? Buffer.concat([prefix, TOO_LONG]) : prefix;
      const headers = { "content-type": "application/grpc", te: "trailers" };
      const answer = await ask("HTTP/2", {
        method: "POST",
        path,
        headers,
        body,
        endless: kind === "endless",
      });
      return [path, answer.trailers["grpc-status"]] as const;
    });
    expect(answers).toEqual(Object.fromEntries(METHODS.map(({ path }) => [path, GRPC_STATUS[kind]])));
  });

  const CONNECT_CODE = { oversize: "resource_exhausted", endless: "deadline_exceeded" };
  test.each(VERSIONS.flatMap((version) => [["oversize", version] as const, ["endless", version] as const]))(
    "by Connect's streams: %s over %s",
    async (kind, version) => {
      const answers = await few(STREAMS, async ({ path }) => {
        const prefix = Buffer.alloc(5);
        prefix.writeUInt32BE(kind === "oversize" ? TOO_LONG.length : 100, 1);
        const body = kind === "oversize" ? Buffer.concat([prefix, TOO_LONG]) : prefix;
        const headers = { "content-type": "application/connect+json" };
        const answer = await ask(version, {
          method: "POST",
          path,
          headers,
          body,
          endless: kind === "endless",
        });
        return [path, JSON.parse(answer.bytes.subarray(5).toString()).error.code] as const;
      });
      expect(answers).toEqual(Object.fromEntries(STREAMS.map(({ path }) => [path, CONNECT_CODE[kind]])));
    },
  );

  test.each(VERSIONS)("HEAD over %s where Connect's GET is", async (version) => {
    const path = "/depute.verifier.v1.LogService/GetLogHead?encoding=json&message=%7B%7D";
    const [get, head] = [
      await ask(version, { method: "GET", path }),
      await ask(version, { method: "HEAD", path }),
    ];
    expect([get.status, head.status, head.bytes.length]).toEqual([200, 200, 0]);
    expect(head.headers["content-type"]).toBe(get.headers["content-type"]);
    const elsewhere = await ask(version, {
      method: "HEAD",
      path: "/depute.registry.v1.AgentService/RegisterAgent",
    });
    expect([elsewhere.status, elsewhere.headers.allow]).toEqual([405, "POST"]);
  });
});

describe("a refused body", () => {
  const PATHS = [
    "/cap/messages",
    "/mcp",
    "/depute.registry.v1.AgentService/ListAgents",
    "/health",
    "/nowhere",
  ];

  test.each(PATHS)("closes its connection over HTTP/1.1: %s", async (path) => {
    const headers = { "content-type": "application/json" };
    const answer = await ask("HTTP/1.1", { method: "POST", path, headers, body: BEGUN, endless: true });
    expect(answer.headers.connection).toBe("close");
    await answer.closed;
  });

  test.each(PATHS)("closes its stream over HTTP/2 without an error: %s", async (path) => {
    const headers = { "content-type": "application/json" };
    const answer = await ask("HTTP/2", { method: "POST", path, headers, body: BEGUN, endless: true });
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(await answer.closed).toBe(0);
    expect((await ask("HTTP/2", { method: "GET", path: "/health" })).status).toBe(200);
  });

  test.each(VERSIONS)(
    "reaches its client as an answer over %s, however much the client sends",
    async (version) => {
      const body = Buffer.alloc(3_000_000, " ");
      const headers = { "content-type": "application/json" };
      const answer = await ask(version, { method: "POST", path: "/mcp", headers, body });
      expect(answer.status).toBe(413);
    },
  );

  test("has another media type if it is compressed", async () => {
    const headers = { "content-type": "application/json", "content-encoding": "gzip" };
    const answer = await ask("HTTP/1.1", { method: "POST", path: "/cap/messages", headers, body: BEGUN });
    expect([answer.status, reasonIn("/cap/messages", answer)]).toEqual([415, "INVALID_REQUEST"]);
  });
});

function ask(version: string, request: Parameters<Ask>[0]): Promise<RawAnswer> {
  const client = asks[version];
  if (client === undefined) throw new Error(`no client for ${version}`);
  return client(request);
}

/** Returns the names of the headers, except `transfer-encoding`, which depends on how the body is framed. */
function headerNames({ headers }: RawAnswer): string[] {
  return Object.keys(headers)
    .filter((name) => name !== "transfer-encoding")
    .sort();
}

/**
 * Returns an object whose entries `entryOf` computes, GROUP at a time. More at once would block this process for
 * longer than the time limit of a body.
 */
async function few<Item, Value>(
  items: readonly Item[],
  entryOf: (item: Item) => Promise<readonly [string, Value]>,
): Promise<Record<string, Value>> {
  const entries: (readonly [string, Value])[] = [];
  for (let at = 0; at < items.length; at += GROUP) {
    entries.push(...(await Promise.all(items.slice(at, at + GROUP).map(entryOf))));
  }
  return Object.fromEntries(entries);
}

const GROUP = 40;

/** Fills the placeholders of a path. */
function filled(path: string): string {
  return path.replace(/\{\w+(\.\.\.)?\}/g, "x1");
}
