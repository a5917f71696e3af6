import { createClient, createRouterTransport, type Interceptor } from "@connectrpc/connect";
import { DeputeError, ErrorReason, systemClock } from "@depute/core";
import { expect, test } from "vitest";
import { principalKey } from "../call-values.ts";
import { type Caller, callerKey } from "../caller.ts";
import { toWire } from "../errors-on-wire.ts";
import { createLogger } from "../log.ts";
import { createMetrics } from "../metrics.ts";
import { EchoService } from "../testing/echo.ts";
import { observeInterceptor } from "./outcome.ts";

/**
 * Returns the log lines of a call that is refused for a reason.
 *
 * @param proven the principal whose holder proof the tokens service verified
 */
async function refused(caller: Caller, proven: string, reason: ErrorReason = ErrorReason.CALLER_NOT_ALLOWED) {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const log = createLogger({ level: "info", name: "test", destination });
  const called: Interceptor = (next) => (request) => {
    request.contextValues.set(callerKey, caller);
    return next(request);
  };
  const transport = createRouterTransport(
    (router) =>
      router.service(EchoService, {
        unary(_, context) {
          context.values.set(principalKey, proven);
          throw toWire(DeputeError.received(reason, "not yours"));
        },
      }),
    { router: { interceptors: [called, observeInterceptor(log, createMetrics(), systemClock)] } },
  );
  await expect(createClient(EchoService, transport).unary({})).rejects.toThrow("not yours");
  return lines;
}

const bound: Caller = { kind: "bound", principal: "", htm: "POST", htu: "" };
const local: Caller = { ...bound, kind: "local", principal: "local" };

test.each<[string, Caller, string, string]>([
  ["a caller that proved its key", bound, "its-key", "its-key"],
  ["a caller with unchecked credentials", bound, "", "unproven"],
  ["a caller without credentials", local, "", "local"],
  ["a configured credential", { ...bound, kind: "credential", principal: "ci" }, "", "ci"],
])("the log line of a refusal names %s", async (_, caller, proven, loggedCaller) => {
  expect(await refused(caller, proven)).toMatchObject([
    { level: "info", caller: loggedCaller, reason: "CALLER_NOT_ALLOWED", refusal: "not yours", msg: "rpc" },
  ]);
});

test("a call that ends because the process drains has no log line", async () => {
  expect(await refused(local, "", ErrorReason.SHUTTING_DOWN)).toEqual([]);
});
