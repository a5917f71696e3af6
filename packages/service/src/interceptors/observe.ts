import { performance } from "node:perf_hooks";
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { reasonName } from "@depute/core";
import { requestIdKey } from "../call-values.ts";
import { callerKey } from "../caller.ts";
import { reasonOf } from "../errors-on-wire.ts";
import type { Logger } from "../log.ts";
import { type Registry, rpcMetrics } from "../metrics.ts";
import { withHooks } from "./outcome.ts";

/** Counts and logs every call: served or given up by its caller at debug, refused at info, a fault of ours at error with its cause. */
export function observeInterceptor(log: Logger, registry: Registry): Interceptor {
  const metrics = rpcMetrics(registry);
  const labelsOf = labelCache();
  return (next) => (request) => {
    const labels = labelsOf(request.method);
    const begin = performance.now();
    metrics.inFlight.inc(labels);
    return withHooks(next, request, {
      end(thrown) {
        const seconds = (performance.now() - begin) / 1000;
        const code = codeName(thrown);
        metrics.inFlight.dec(labels);
        metrics.duration.observe(labels, seconds);
        metrics.requests.inc({ ...labels, code });
        const level = levelOf(thrown);
        if (!log.isLevelEnabled(level)) return;
        const fields: Record<string, unknown> = {
          rpc: `${labels.service}/${labels.method}`,
          code,
          ms: Math.round(seconds * 100_000) / 100,
          request_id: request.contextValues.get(requestIdKey),
          caller: request.contextValues.get(callerKey)?.principal,
        };
        const reason = thrown === undefined ? undefined : reasonOf(thrown);
        if (reason !== undefined) fields.reason = reasonName(reason);
        if (level === "error") fields.err = causeOf(thrown);
        else if (thrown instanceof ConnectError) fields.refusal = thrown.rawMessage;
        log[level](fields, "rpc");
      },
    });
  };
}

function labelCache() {
  const cache = new WeakMap<DescMethod, { service: string; method: string }>();
  return (method: DescMethod) => {
    let labels = cache.get(method);
    if (labels === undefined) {
      labels = { service: method.parent.typeName, method: method.name };
      cache.set(method, labels);
    }
    return labels;
  };
}

function levelOf(thrown: unknown): "debug" | "info" | "error" {
  if (thrown === undefined) return "debug";
  const code = thrown instanceof ConnectError ? thrown.code : Code.Unknown;
  if (code === Code.Canceled) return "debug";
  return code === Code.Internal || code === Code.Unknown || code === Code.DataLoss ? "error" : "info";
}

/** gRPC's own spelling of a status, e.g. `NOT_FOUND`. */
function codeName(thrown: unknown): string {
  if (thrown === undefined) return "OK";
  const code = thrown instanceof ConnectError ? thrown.code : Code.Unknown;
  const name = Code[code] ?? "Unknown";
  return name === "Canceled" ? "CANCELLED" : name.replace(/(?<=.)([A-Z])/g, "_$1").toUpperCase();
}

/** What really happened: the refusal that travels holds it as its cause, wrapped once or twice. */
function causeOf(thrown: unknown): unknown {
  let cause = thrown;
  for (let depth = 0; depth < 3 && cause instanceof Error && cause.cause !== undefined; depth++)
    cause = cause.cause;
  return cause;
}
