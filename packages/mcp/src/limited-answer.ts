import type { RequestId } from "@modelcontextprotocol/client";
import { oversize } from "./oversize.ts";

const [LINE_FEED, CARRIAGE_RETURN] = [10, 13];
const utf8 = new TextEncoder();

/**
 * An answer over HTTP of which no more is held than a message may have. In place of a larger message stands an error for the
 * request; an event stream ends with it.
 *
 * @param requestId of the request that is answered; undefined for a stream of no request, which ends without a word
 */
export async function limitedAnswer(
  answer: Response,
  maxBytes: number,
  requestId: RequestId | undefined,
): Promise<Response> {
  const { body, status, statusText, headers } = answer;
  if (body === null) return answer;
  const instead = requestId === undefined ? "" : JSON.stringify(oversize(requestId, maxBytes));
  const plain = new Headers(headers);
  // The body is decoded by now, and may be another one.
  for (const name of ["content-length", "content-encoding"]) plain.delete(name);
  const init = { status, statusText, headers: plain };
  if (headers.get("content-type")?.startsWith("text/event-stream") === true) {
    return new Response(body.pipeThrough(limitedEvents(maxBytes, instead)), init);
  }
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body) {
    bytes += part.length;
    if (bytes > maxBytes) return new Response(instead, init);
    parts.push(part);
  }
  // Some answers, as 202, must not have a body that is there.
  return new Response(bytes === 0 ? null : Buffer.concat(parts), init);
}

/** Passes events on once they are whole. */
function limitedEvents(maxBytes: number, instead: string): TransformStream<Uint8Array, Uint8Array> {
  let held: Uint8Array[] = [];
  let bytes = 0;
  let isLineEmpty = true;
  return new TransformStream({
    transform(chunk, controller) {
      let begin = 0;
      for (let at = 0; at < chunk.length; at++) {
        if (chunk[at] === CARRIAGE_RETURN) continue;
        if (chunk[at] !== LINE_FEED) isLineEmpty = false;
        else if (!isLineEmpty) isLineEmpty = true;
        else {
          for (const part of held.splice(0)) controller.enqueue(part);
          controller.enqueue(chunk.subarray(begin, at + 1));
          begin = at + 1;
          bytes = 0;
        }
        if (++bytes <= maxBytes) continue;
        if (instead !== "") controller.enqueue(utf8.encode(`data: ${instead}\n\n`));
        held = [];
        controller.terminate();
        return;
      }
      if (begin < chunk.length) held.push(chunk.subarray(begin));
    },
    flush(controller) {
      for (const part of held) controller.enqueue(part);
    },
  });
}
