import { Code, ConnectError } from "@connectrpc/connect";
import { PlainHeaders } from "./plain-headers.ts";
import type { AnswerHead, Protocol } from "./protocol.ts";

/** The header and the trailer that an answer begins with. */
export function headOf({ header, trailer }: Protocol): AnswerHead {
  return { header: PlainHeaders.toSend({ ...header }), trailer: PlainHeaders.toSend({ ...trailer }) };
}

/** An interceptor may answer with headers of its own. */
export function replace(into: Headers, by: Headers): void {
  if (into === by) return;
  for (const name of [...into.keys()]) into.delete(name);
  for (const [name, value] of by) into.append(name, value);
}

/** What is thrown, as it is answered. */
export function refusalOf(thrown: unknown): ConnectError {
  return thrown instanceof ConnectError
    ? thrown
    : new ConnectError("internal error", Code.Internal, undefined, undefined, thrown);
}
