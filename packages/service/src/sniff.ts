import type { Socket } from "node:net";
import type { Timers } from "@depute/core";

/** The beginning of an HTTP/2 connection (RFC 9113 section 3.4); no HTTP/1.1 request begins like it. */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n");

export type HttpVersion = 1 | 2;

/**
 * Tells from a connection's first bytes which protocol it speaks; the bytes are put back.
 *
 * A connection that does not say enough within `timeoutMs` is closed, and `decided` is not called.
 */
export function sniffProtocol(
  socket: Socket,
  timers: Timers,
  timeoutMs: number,
  decided: (version: HttpVersion) => void,
): void {
  let seen: Buffer = Buffer.alloc(0);
  const cancel = timers.after(timeoutMs, () => socket.destroy());
  const onReadable = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const length = Math.min(seen.length, PREFACE.length);
    const alike = seen.compare(PREFACE, 0, length, 0, length) === 0;
    if (alike && seen.length < PREFACE.length) return;
    forget();
    socket.unshift(seen);
    decided(alike ? 2 : 1);
  };
  const onError = () => socket.destroy();
  const forget = () => {
    cancel();
    socket.off("readable", onReadable);
    socket.off("error", onError);
    socket.off("close", forget);
  };
  socket.on("readable", onReadable);
  socket.on("error", onError);
  socket.on("close", forget);
}
