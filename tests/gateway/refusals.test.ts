import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type McpPlatform, startPlatform } from "../mcp/platform.ts";
import { startPlatform as startWhole, type TestPlatform } from "./platform.ts";
import { type Ask, overHttp1, type RawRequest } from "./raw-clients.ts";
import { reasonIn } from "./wire-forms.ts";

const MAX_BYTES = 1024;

let platform: McpPlatform;
let closed: TestPlatform;
let ask: Ask;
beforeAll(async () => {
  platform = await startPlatform({}, [
    ...["--max-body-bytes", String(MAX_BYTES)],
    ...["--body-timeout", "300ms"],
  ]);
  closed = await startWhole(["--auth", "required"]);
  ask = overHttp1(platform.url);
});
afterAll(() => Promise.all([platform.stop(), closed.stop()]));

interface TestedWire {
  readonly name: string;
  /** An address that has no route. */
  readonly unknown: string;
  /** An address that allows GET but not PATCH. */
  readonly get: string;
  /** The wire's address for requests with a body; absent if the wire takes no bodies. */
  readonly post?: string;
  /** A request that needs credentials; absent if every client may read. */
  readonly secret?: RawRequest;
}

const discover = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"nekte.discover","params":{"level":0}}');
const malformed = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"delegateos/delegate","params":{}}');
const tool = Buffer.from(
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"discover","arguments":{}}}',
);
const MCP_HEADERS = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
  "mcp-protocol-version": "2025-06-18",
};
const JSON_HEADERS = { "content-type": "application/json" };

const WIRES: readonly TestedWire[] = [
  { name: "cards", unknown: "/agents/a/b/c", get: "/agents/a/agent-card.json" },
  {
    name: "A2A",
    unknown: "/a2a/a/b/c/d",
    get: "/a2a/a/.well-known/agent-card.json",
    post: "/a2a/a",
  },
  {
    name: "Agenta",
    unknown: "/agenta/nothing",
    get: "/agenta/offers",
    post: "/agenta/offers",
    secret: { method: "GET", path: "/agenta/offers" },
  },
  {
    name: "ASP",
    unknown: "/v1/asp/nothing",
    get: "/v1/asp/sessions",
    post: "/v1/asp/sessions",
    secret: { method: "GET", path: "/v1/asp/sessions" },
  },
  {
    name: "CAP",
    unknown: "/cap/nothing",
    get: "/cap/agents",
    post: "/cap/messages",
    secret: { method: "GET", path: "/cap/agents" },
  },
  {
    name: "DelegateOS",
    unknown: "/delegateos/nothing",
    get: "/delegateos/revocations",
    post: "/delegateos",
    secret: { method: "GET", path: "/delegateos/revocations" },
  },
  { name: "the log", unknown: "/log/nothing", get: "/log/head" },
  {
    name: "MCP",
    unknown: "/mcp/nothing/at/all",
    get: "/mcp",
    post: "/mcp",
  },
  {
    name: "NEKTE",
    unknown: "/nekte/a/b/c",
    get: "/nekte/health",
    post: "/nekte",
    secret: { method: "POST", path: "/nekte", headers: JSON_HEADERS, body: discover },
  },
];

/** Requests that the edge refuses, with the status and the reason of each. */
const REFUSED: readonly [
  name: string,
  status: number,
  reason: string,
  request: (wire: TestedWire) => RawRequest | undefined,
][] = [
  ["an unknown path", 404, "UNKNOWN_METHOD", ({ unknown }) => ({ method: "GET", path: unknown })],
  ["an unknown path by POST", 404, "UNKNOWN_METHOD", ({ unknown }) => posted(unknown, "{}")],
  ["another method", 405, "UNKNOWN_METHOD", ({ get }) => ({ method: "PATCH", path: get })],
  [
    "an accept that allows no answer",
    406,
    "INVALID_REQUEST",
    ({ get }) => ({ method: "GET", path: get, headers: { accept: "image/png" } }),
  ],
  [
    "an unknown query parameter",
    400,
    "INVALID_REQUEST",
    ({ get }) => ({ method: "GET", path: `${get}?nonsense=1` }),
  ],
  [
    "an unknown query parameter beside a body",
    400,
    "INVALID_REQUEST",
    ({ post }) => posted(post && `${post}?nonsense=1`, "{}"),
  ],
  [
    "another media type",
    415,
    "INVALID_REQUEST",
    ({ post }) => posted(post, "a,b", { headers: { "content-type": "text/csv" } }),
  ],
  ["a body that is too long", 413, "LIMIT_EXCEEDED", ({ post }) => posted(post, LONG)],
  [
    "a body that does not end",
    408,
    "DEADLINE_EXCEEDED",
    ({ post }) => posted(post, '{"a":', { endless: true }),
  ],
];

const LONG = " ".repeat(MAX_BYTES + 1);

/** Makes a POST request with a body; returns undefined for a wire that takes no body. */
function posted(
  path: string | undefined,
  body: string,
  more: Partial<RawRequest> = {},
): RawRequest | undefined {
  return path === undefined
    ? undefined
    : { method: "POST", path, headers: JSON_HEADERS, body: Buffer.from(body), ...more };
}

describe.each(WIRES)("$name refuses in its own form", (wire) => {
  const rows = REFUSED.flatMap(([name, status, reason, requestOf]) => {
    const request = requestOf(wire);
    return request === undefined ? [] : [[name, status, reason, request] as const];
  });

  test.each(rows)("%s: %i", async (_, status, reason, request) => {
    const answer = await ask(request);
    const path = request.path.split("?", 1)[0] ?? "";
    expect([answer.status, reasonIn(path, answer)]).toEqual([status, reason]);
    expect(answer.headers["depute-request-id"]).toBeTypeOf("string");
    if (status === 405) expect(answer.headers.allow).toMatch(/GET|POST/);
  });
});

const NEEDING = WIRES.flatMap(({ name, secret }) => (secret === undefined ? [] : [[name, secret] as const]));

test.each(NEEDING)(
  "%s refuses a request without credentials, and states how to authenticate",
  async (_, request) => {
    const answer = await overHttp1(closed.url)(request);
    expect([answer.status, answer.headers["www-authenticate"]]).toEqual([401, "DPoP, Bearer"]);
    expect(answer.bytes.toString()).toContain("UNAUTHENTICATED");
  },
);

test("MCP refuses a tool without credentials, and states how to authenticate", async () => {
  const answer = await overHttp1(closed.url)({
    ...{ method: "POST", path: "/mcp", headers: MCP_HEADERS, body: tool },
  });
  expect([answer.status, answer.headers["www-authenticate"]]).toEqual([401, "DPoP, Bearer"]);
});

test("the refusal of a known query parameter names it", async () => {
  const answer = await ask({ method: "GET", path: "/delegateos/revocations?since=x" });
  expect([answer.status, answer.bytes.toString()]).toEqual([400, expect.stringContaining("since")]);
});

test("DelegateOS refuses malformed parameters as an error of the call", async () => {
  const answer = await ask({ method: "POST", path: "/delegateos", headers: JSON_HEADERS, body: malformed });
  expect([answer.status, JSON.parse(answer.bytes.toString()).error.code]).toEqual([200, -32602]);
});
