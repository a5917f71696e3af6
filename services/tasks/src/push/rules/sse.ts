import { createParser } from "eventsource-parser";
import { PeerFault, TOO_MUCH } from "./refusal.ts";

/** A server-sent event with its data as text. */
export interface RawEvent {
  readonly event: string;
  readonly data: string;
  readonly id: string | undefined;
}

/** Maximum number of characters of one event: enough for a result of 1 MiB at three levels. */
export const MAX_EVENT_CHARS = 4 * 1024 * 1024;

/**
 * Parses server-sent events as the HTML standard defines them. Drops text after the last blank line, which is an
 * incomplete event.
 *
 * @throws PeerFault LIMIT_EXCEEDED for an event that is too long, and the errors of `bytes`
 */
export async function* readServerSentEvents(
  bytes: AsyncIterable<Uint8Array>,
): AsyncGenerator<RawEvent, void, undefined> {
  const decoder = new TextDecoder();
  const events: RawEvent[] = [];
  let isTooLong = false;
  const parser = createParser({
    maxBufferSize: MAX_EVENT_CHARS,
    onEvent({ event = "", data, id }) {
      isTooLong ||= data.length > MAX_EVENT_CHARS;
      events.push({ event: event.trim(), data, id });
    },
    onError({ type }) {
      isTooLong ||= type === "max-buffer-size-exceeded";
    },
  });
  let afterReturn = false;
  for await (const chunk of bytes) {
    let text = decoder.decode(chunk, { stream: true });
    if (text === "") continue;
    // After a chunk that ends with a carriage return, the parser would wait for a line feed. So this code adds a line
    // feed, and drops one at the start of the next chunk.
    if (afterReturn && text.startsWith("\n")) text = text.slice(1);
    afterReturn = text.endsWith("\r");
    parser.feed(afterReturn ? `${text}\n` : text);
    if (isTooLong) throw tooLong();
    yield* events.splice(0);
  }
}

function tooLong(): PeerFault {
  return new PeerFault(TOO_MUCH, "the endpoint sent an event that is too long");
}
