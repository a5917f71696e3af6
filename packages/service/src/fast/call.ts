import type { IncomingHttpHeaders } from "node:http2";
import type { FastMethod } from "./methods.ts";
import type { Protocol } from "./protocol.ts";

/** A call whose head has come. */
export interface Call {
  readonly headers: IncomingHttpHeaders;
  /** The address that was called, as Connect's adapter gives it to handlers. */
  readonly url: string;
  readonly method: FastMethod;
  readonly protocol: Protocol;
  /** Epoch ms by which the caller wants its answer. */
  readonly due: number | undefined;
}
