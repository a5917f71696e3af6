import { AsyncLocalStorage } from "node:async_hooks";
import type { Interceptor } from "@connectrpc/connect";
import { beneficiaryOf, type CurrentCall, originOf } from "../call-origin.ts";
import { type Request, withHooks } from "./outcome.ts";

const current = new AsyncLocalStorage<Request>();

/** Makes the call available to `currentCall` while its handler runs, so that rows of a store can record the call. */
export function currentCallInterceptor(): Interceptor {
  return (next) => (request) =>
    request.stream
      ? withHooks(next, request, { run: (step) => current.run(request, step) })
      : current.run(request, next, request);
}

/** Returns the request that this code serves; undefined for work without a call. */
export function currentRequest(): Request | undefined {
  return current.getStore();
}

/** Returns the circumstances of the call that this code serves; undefined for work without a call. */
export function currentCall(): CurrentCall | undefined {
  const request = current.getStore();
  return request === undefined ? undefined : circumstancesOf(request);
}

/**
 * Returns the name of the queue in which the current call's writes wait: the principal on whose behalf the call is
 * made. Empty for work without a call, and before the principal is proven.
 */
export function lineOfCurrentCall(): string {
  const request = current.getStore();
  if (request === undefined) return "";
  const { contextValues: values, header: requestHeader } = request;
  return beneficiaryOf({ values, requestHeader });
}

/** Returns the circumstances of a call. */
export function circumstancesOf({ method, contextValues, header }: Request): CurrentCall {
  return {
    ...originOf({ values: contextValues, requestHeader: header }),
    rpc: `${method.parent.typeName}/${method.name}`,
  };
}
