import { performance } from "node:perf_hooks";
import { Code, ConnectError, type ContextValues, type Interceptor } from "@connectrpc/connect";
import { ErrorReason, reasonName } from "@depute/core";
import { principalKey, requestIdKey } from "../call-values.ts";
import { callerKey } from "../caller.ts";
import { reasonOf } from "../errors-on-wire.ts";
import type { Logger } from "../log.ts";
import { type Registry, rpcMetrics } from "../metrics.ts";
import { withHooks } from "./outcome.ts";

/**
 * Counts and logs every call: at debug what is served, given up by its caller, or ended by a drain; at info what is refused;
 * at error a fault of ours, with its cause.
 */
export function observeInterceptor(log: Logger, registry: Registry): Interceptor {
  const metrics = rpcMetrics(registry);
  return (next) => (request) => {
    const tally = metrics.of(request.method);
    const begin = performance.now();
    tally.begin();
    return withHooks(next, request, {
      end(thrown) {
        const seconds = (performance.now() - begin) / 1000;
        const code = codeName(thrown);
        tally.end(code, seconds);
        const cause = causeOf(thrown);
        const level = levelOf(thrown, cause);
        if (!log.isLevelEnabled(level)) return;
        const fields: Record<string, unknown> = {
          rpc: `${tally.service}/${tally.method}`,
          code,
          ms: Math.round(seconds * 100_000) / 100,
          request_id: request.contextValues.get(requestIdKey),
          caller: callerIn(request.contextValues),
        };
        const reason = thrown === undefined ? undefined : reasonOf(thrown);
        if (reason !== undefined) fields.reason = reasonName(reason);
        if (level === "error") fields.err = cause;
        else if (thrown instanceof ConnectError) fields.refusal = thrown.rawMessage;
        log[level](fields, "rpc");
      },
    });
  };
}

/** Who calls, as far as it is proven; of credentials that nobody has judged only that there are some. */
function callerIn(values: ContextValues): string | undefined {
  const caller = values.get(callerKey);
  if (caller?.kind !== "bound") return caller?.principal;
  return values.get(principalKey) || "unproven";
}

function levelOf(thrown: unknown, cause: unknown): "debug" | "info" | "error" {
  if (thrown === undefined) return "debug";
  const code = thrown instanceof ConnectError ? thrown.code : Code.Unknown;
  if (code === Code.Canceled || reasonOf(thrown) === ErrorReason.SHUTTING_DOWN) return "debug";
  // A service that said INTERNAL has logged why itself.
  if (cause instanceof ConnectError && reasonOf(cause) !== undefined) return "info";
  return code === Code.Internal || code === Code.Unknown || code === Code.DataLoss ? "error" : "info";
}

/** gRPC's own spelling of a status, e.g. `NOT_FOUND`. */
function codeName(thrown: unknown): string {
  if (thrown === undefined) return "OK";
  const code = thrown instanceof ConnectError ? thrown.code : Code.Unknown;
  const name = Code[code] ?? "Unknown";
  return name === "Canceled" ? "CANCELLED" : name.replace(/(?<=.)([A-Z])/g, "_$1").toUpperCase();
}

/**
 * What really happened here: the refusal that travels holds it as its cause, wrapped once or twice. It is a refusal with a
 * reason where another service said so.
 */
function causeOf(thrown: unknown): unknown {
  let cause = thrown;
  for (let depth = 0; depth < 3 && cause instanceof Error && cause.cause !== undefined; depth++) {
    cause = cause.cause;
    if (cause instanceof ConnectError && reasonOf(cause) !== undefined) break;
  }
  return cause;
}
