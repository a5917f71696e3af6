import type { CallEnd } from "../call-end.ts";
import type { Call } from "./call.ts";
import { PlainHeaders } from "./plain-headers.ts";
import type { Answer } from "./protocol.ts";

/** Has Connect's adapter answer a call whose body was begun. */
export async function handOver(call: Call, end: CallEnd, body: AsyncIterable<Uint8Array>): Promise<Answer> {
  const answered = await call.method.adapter.handle({
    httpVersion: "2.0",
    method: "POST",
    url: call.url,
    header: new Headers([...PlainHeaders.received(call.headers)]),
    body,
    signal: end.signal,
  });
  const chunks: Uint8Array[] = [];
  for await (const chunk of answered.body ?? []) chunks.push(chunk);
  return {
    status: answered.status,
    header: answered.header ?? new Headers(),
    body: Buffer.concat(chunks),
    trailer: answered.trailer,
  };
}
