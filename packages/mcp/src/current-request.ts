import { AsyncLocalStorage } from "node:async_hooks";

/** A client's request. All calls to the platform that serve this request have its id. */
export interface RequestOrigin {
  readonly requestId: string;
  /** The network address of the client, without a port; empty where it is unknown. */
  readonly address: string;
}

/** The key of `_meta` under which a result contains the request's id, for clients over stdio. */
export const REQUEST_ID_META = "depute.dev/requestId";

const current = new AsyncLocalStorage<RequestOrigin>();

/** Calls `run`. While `run` works, also after an `await`, `currentRequest` returns this request. */
export function inRequest<T>(origin: RequestOrigin, run: () => T): T {
  return current.run(origin, run);
}

/** Returns the request that the calling code serves; undefined for work without a request. */
export function currentRequest(): RequestOrigin | undefined {
  return current.getStore();
}
