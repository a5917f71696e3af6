import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "./platform.ts";
import { type Ask, overHttp1, overHttp2, type RawRequest } from "./raw-clients.ts";

const LISTED = "https://app.example.org";
const UNLISTED = "https://other.example.org";

let platform: TestPlatform;
let asks: Record<string, Ask>;
let close: () => void;
beforeAll(async () => {
  platform = await startPlatform(["--allowed-origins", LISTED]);
  const two = overHttp2(platform.url);
  asks = { "HTTP/1.1": overHttp1(platform.url), "HTTP/2": two.ask };
  close = () => two.session.close();
});
afterAll(async () => {
  close();
  await platform.stop();
});

function ask(version: string, request: RawRequest) {
  const client = asks[version];
  if (client === undefined) throw new Error(`no client for ${version}`);
  return client(request);
}

const GET_ISSUER = "/depute.tokens.v1.TokenService/GetIssuer";
const PATHS = [
  "/cap/messages",
  "/nekte",
  "/mcp",
  "/v1/asp/sessions",
  "/delegateos",
  "/agenta/offers",
  GET_ISSUER,
];
const VERSIONS = ["HTTP/1.1", "HTTP/2"];

describe.each(VERSIONS)("over %s", (version) => {
  test.each(PATHS)("a preflight of a listed origin is allowed at %s", async (path) => {
    const { status, headers } = await ask(version, preflight(path, LISTED));
    expect([status, headers["access-control-allow-origin"]]).toEqual([204, LISTED]);
    expect(words(headers["access-control-allow-methods"])).toEqual(
      expect.arrayContaining(["get", "post", "put", "delete"]),
    );
    expect(words(headers["access-control-allow-headers"])).toEqual(
      expect.arrayContaining(["authorization", "dpop", "content-type", "x-grpc-web", "last-event-id"]),
    );
    expect(words(headers.vary)).toContain("origin");
    expect(headers["access-control-allow-credentials"]).toBeUndefined();
  });

  test.each(PATHS)("a preflight of an unlisted origin is refused at %s", async (path) => {
    const { status, headers } = await ask(version, preflight(path, UNLISTED));
    expect([status, headers["access-control-allow-origin"]]).toEqual([403, undefined]);
  });

  test.each<[string, RawRequest, number]>([
    ["a wire", { method: "GET", path: "/cap/error-codes" }, 200],
    ["a wire's refusal", { method: "GET", path: "/cap/nothing" }, 404],
    ["an unknown path", { method: "GET", path: "/nowhere" }, 404],
    ["Connect", unary("application/json", "{}"), 200],
    ["gRPC-Web", unary("application/grpc-web+proto", "\0\0\0\0\0"), 200],
    ["HEAD", { method: "HEAD", path: "/log/head" }, 200],
  ])("a page of a listed origin reads the answer of %s", async (_, request, status) => {
    const answer = await ask(version, { ...request, headers: { ...request.headers, origin: LISTED } });
    expect([answer.status, answer.headers["access-control-allow-origin"]]).toEqual([status, LISTED]);
    expect(words(answer.headers["access-control-expose-headers"])).toEqual(
      expect.arrayContaining(["grpc-status", "grpc-message", "depute-request-id", "www-authenticate"]),
    );
    expect(words(answer.headers.vary)).toEqual(["origin"]);
  });

  test("a page of an unlisted origin is refused and reads nothing", async () => {
    const { status, headers } = await ask(version, {
      ...{ method: "GET", path: "/cap/error-codes", headers: { origin: UNLISTED } },
    });
    expect([status, headers["access-control-allow-origin"]]).toEqual([403, undefined]);
  });

  test("a client other than a page gets no permission, and caches keep its answer apart", async () => {
    const { status, headers } = await ask(version, { method: "GET", path: "/cap/error-codes" });
    expect([status, headers["access-control-allow-origin"]]).toEqual([200, undefined]);
    expect(words(headers.vary)).toEqual(["origin"]);
  });
});

test("no page may call where no origin is listed", async () => {
  const closed = await startPlatform();
  try {
    const { status, headers } = await overHttp1(closed.url)(preflight("/cap/messages", LISTED));
    expect([status, headers["access-control-allow-origin"]]).toEqual([403, undefined]);
  } finally {
    await closed.stop();
  }
});

function preflight(path: string, origin: string): RawRequest {
  const headers = {
    origin,
    "access-control-request-method": "POST",
    "access-control-request-headers": "content-type,authorization",
  };
  return { method: "OPTIONS", path, headers };
}

function unary(type: string, body: string): RawRequest {
  return { method: "POST", path: GET_ISSUER, headers: { "content-type": type }, body: Buffer.from(body) };
}

function words(list: unknown): string[] {
  return String(list ?? "")
    .toLowerCase()
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");
}
