import type { RequestId } from "@modelcontextprotocol/client";
import { oversize } from "./oversize.ts";

const [LINE_FEED, CARRIAGE_RETURN] = [10, 13];
const utf8 = new TextEncoder();

/**
 * Limits the memory for an HTTP response: the proxy buffers at most one message of at most `maxBytes`, and replaces a
 * larger message by an error for the request. An event stream ends after this error.
 *
 * @param requestId id of the request; undefined for a stream that belongs to no request. Such a stream ends without
 * an error
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
  // Removes these headers, because the body is decoded and may be replaced.
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
  // An empty body is passed as null, because some statuses, such as 202, forbid a body.
  return new Response(bytes === 0 ? null : Buffer.concat(parts), init);
}

/**
 * Returns a transformer for an event stream. The transformer forwards each event only after the event's last byte has
 * arrived.
 */
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
