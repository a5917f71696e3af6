import { AsyncLocalStorage } from "node:async_hooks";

/** The client's request that this code serves. All calls to the platform for this request have its id. */
export interface RequestOrigin {
  readonly requestId: string;
  /** The network address of the client, without a port; empty where it is unknown. */
  readonly address: string;
}

/** The member of a result's `_meta` with the request's id, for clients over stdio. */
export const REQUEST_ID_META = "depute.dev/requestId";

const current = new AsyncLocalStorage<RequestOrigin>();

/** Runs code that serves a request. */
export function inRequest<T>(origin: RequestOrigin, run: () => T): T {
  return current.run(origin, run);
}

/** Returns the request that this code serves; undefined for work without a request. */
export function currentRequest(): RequestOrigin | undefined {
  return current.getStore();
}
