import { createHash } from "node:crypto";
import { createClient, createRouterTransport, type Interceptor, type Transport } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { AuditService } from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { ErrorReason, ManualClock } from "@depute/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { principalKey, roleCheckKey } from "../call-values.ts";
import { callerInterceptor } from "../caller-interceptor.ts";
import { type Credentials, noCredentials, parseCredentials } from "../credentials.ts";
import { fromConnectError, toConnectError } from "../errors-on-wire.ts";
import type { RoleName } from "../identities/identities-schema.ts";
import { NO_INTERNAL_SECRETS } from "../internal-secrets.ts";
import { OpenStreams, STREAM_CHECK_MS } from "./open-streams.ts";
import { withHooks } from "./outcome.ts";
import { rolesInterceptor } from "./roles.ts";

let clock: ManualClock;
/** The credentials file, which the test changes while streams are open. */
let current: Credentials;
let bySettings: RoleName[];
const credentials: Credentials = {
  holderOf: (secret) => current.holderOf(secret),
  organizationOf: (principal) => current.organizationOf(principal),
  rolesOf: (principal) => current.rolesOf(principal),
  names: (principal) => current.names(principal),
  size: 1,
};

beforeEach(() => {
  clock = new ManualClock();
  current = file({ principal: "ada" });
  bySettings = [];
});

function file(entry: { principal: string; organization?: string; roles?: RoleName[] }): Credentials {
  const sha256 = createHash("sha256").update("s3cret").digest("hex");
  return parseCredentials(JSON.stringify([{ ...entry, sha256 }]));
}

/** Replaces a handler that verifies the principal of a holder proof. */
const proving: Interceptor = (next) => async (request) => {
  if (request.header.has("dpop")) {
    request.contextValues.set(principalKey, "key-of-ada");
    request.contextValues.get(roleCheckKey)?.("key-of-ada");
  }
  return next(request);
};

const toErrors: Interceptor = (next) => (request) =>
  withHooks(next, request, { mapError: (thrown) => toConnectError(thrown, "") });

function serve(): Transport {
  const roles = { credentials, bySettings: () => bySettings, forwarded: new Set<string>() };
  const streams = new OpenStreams({ ...roles, mode: "open", credentials, timers: clock });
  return createRouterTransport(
    ({ rpc }) => {
      rpc(AgentService.method.watchAgents, async function* (_, { signal }) {
        yield {};
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      });
      rpc(AuditService.method.watchAuditRecords, async function* (_, { signal }) {
        yield {};
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      });
    },
    {
      router: {
        interceptors: [
          toErrors,
          callerInterceptor({
            ...{ mode: "open", credentials, reach: { publicUrl: "http://here" } },
            ...{ internalSecrets: NO_INTERNAL_SECRETS, exempt: [] },
          }),
          rolesInterceptor(roles),
          streams.interceptor(),
          proving,
        ],
      },
    },
  );
}

const secret = { authorization: "Bearer s3cret" };
let abort: AbortController;
beforeEach(() => {
  abort = new AbortController();
});
afterEach(() => abort.abort());

/**
 * Opens a stream, and reads its first message. `reason` returns the reason with which the stream ended, undefined while
 * it is open; `turn` lets the next check of open streams run.
 */
async function open(
  method: "agents" | "audit",
  headers: Record<string, string>,
): Promise<{ reason(): ErrorReason | undefined; turn(): Promise<void> }> {
  const options = { headers, signal: abort.signal };
  const transport = serve();
  const stream: AsyncIterable<unknown> =
    method === "agents"
      ? createClient(AgentService, transport).watchAgents({}, options)
      : createClient(AuditService, transport).watchAuditRecords({}, options);
  const iterator = stream[Symbol.asyncIterator]();
  await iterator.next();
  let reason: ErrorReason | undefined;
  iterator.next().catch((error: unknown) => {
    reason = fromConnectError(error).reason;
  });
  return {
    reason: () => reason,
    async turn() {
      clock.advance(STREAM_CHECK_MS);
      for (let n = 0; n < 5; n++) await clock.nextTurn();
    },
  };
}

describe("an open stream", () => {
  it("continues while its caller's credentials and roles are valid", async () => {
    const stream = await open("agents", secret);
    await stream.turn();
    await stream.turn();
    expect(stream.reason()).toBeUndefined();
  });

  it.each<[string, () => void, ErrorReason]>([
    ["its secret is removed", () => (current = noCredentials), ErrorReason.UNAUTHENTICATED],
    [
      "its secret stands for another principal",
      () => (current = file({ principal: "bob", roles: ["auditor"] })),
      ErrorReason.UNAUTHENTICATED,
    ],
    [
      "its secret stands for another organization",
      () => (current = file({ principal: "ada", organization: "acme", roles: ["auditor"] })),
      ErrorReason.UNAUTHENTICATED,
    ],
    [
      "its role is revoked",
      () => (current = file({ principal: "ada", roles: ["user"] })),
      ErrorReason.CALLER_NOT_ALLOWED,
    ],
  ])("ends when %s, at the next check", async (_, change, reason) => {
    current = file({ principal: "ada", roles: ["auditor"] });
    const stream = await open("audit", secret);
    await stream.turn();
    expect(stream.reason()).toBeUndefined();
    change();
    await stream.turn();
    expect(stream.reason()).toBe(reason);
  });

  it("of a holder proof ends when the key loses its role, without another check of the proof", async () => {
    bySettings = ["auditor"];
    const stream = await open("audit", { dpop: "proof" });
    await stream.turn();
    expect(stream.reason()).toBeUndefined();
    bySettings = [];
    await stream.turn();
    expect(stream.reason()).toBe(ErrorReason.CALLER_NOT_ALLOWED);
  });

  it("leaves no timer when it ends", async () => {
    const stream = await open("agents", secret);
    expect(clock.pending).toBe(1);
    abort.abort();
    for (let n = 0; n < 5; n++) await clock.nextTurn();
    expect(clock.pending).toBe(0);
    expect(stream.reason()).not.toBe(ErrorReason.UNAUTHENTICATED);
  });
});
