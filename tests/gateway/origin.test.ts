import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call, startPlatform, type TestPlatform } from "./platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

const ELSEWHERE = "https://elsewhere.example";
const PATHS: readonly [string, unknown][] = [
  ["/nekte", call("nekte.discover", { level: 0 })],
  ["/delegateos", call("delegateos/revoke", {})],
  ["/agenta/execution_requests", {}],
  ["/v1/asp/sessions", {}],
  ["/cap/messages", {}],
  ["/mcp", call("ping")],
  ["/depute.tokens.v1.TokenService/GetIssuer", {}],
];

test.each(PATHS)("a page of another site reaches nothing at %s", async (path, body) => {
  const answer = await platform.post(path, body, { origin: ELSEWHERE });
  expect(answer.status).toBe(403);
  expect(await answer.json()).toMatchObject({ code: "permission_denied" });
  // Browsers send forms and plain text without a preflight. The platform refuses such a request too.
  const plain = { origin: ELSEWHERE, "content-type": "text/plain" };
  expect((await platform.post(path, JSON.stringify(body), plain)).status).toBe(403);
});

test.each(PATHS)("a page of the platform's own is answered at %s", async (path, body) => {
  const headers = { origin: new URL(platform.url).origin, accept: "application/json, text/event-stream" };
  expect((await platform.post(path, body, headers)).status).not.toBe(403);
});

test.each(["/nekte/any/.well-known/nekte.json", "/v1/asp/sessions/any", "/cap/inbox/any", "/health"])(
  "a page of another site does not read %s",
  async (path) => {
    const answer = await fetch(`${platform.url}${path}`, { headers: { origin: ELSEWHERE } });
    expect(answer.status).toBe(403);
  },
);

test("over gRPC the refusal is a gRPC status", async () => {
  const { tokens } = platform.clients;
  await tokens.getIssuer({}, { headers: { origin: new URL(platform.url).origin } });
  const refused = tokens.getIssuer({}, { headers: { origin: ELSEWHERE } });
  await expect(refused).rejects.toMatchObject({ code: Code.PermissionDenied });
});
