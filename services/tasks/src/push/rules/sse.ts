import { PeerFault, TOO_MUCH } from "./refusal.ts";

/** A server-sent event as it stood on the wire. */
export interface RawEvent {
  readonly event: string;
  readonly data: string;
  readonly id: string | undefined;
}

/** Characters of one event at most: a result of 1 MiB at three levels. */
export const MAX_EVENT_CHARS = 4 * 1024 * 1024;

/**
 * Reads server-sent events as HTML's standard has them: any of three line ends, comments, several data lines, one optional
 * space after the colon. What stands after the last blank line is no event.
 *
 * @throws PeerFault LIMIT_EXCEEDED for an event that is too long, and what `bytes` throws
 */
export async function* readServerSentEvents(
  bytes: AsyncIterable<Uint8Array>,
): AsyncGenerator<RawEvent, void, undefined> {
  const decoder = new TextDecoder();
  let block = new Block();
  let rest = "";
  let afterReturn = false;
  for await (const chunk of bytes) {
    let text = decoder.decode(chunk, { stream: true });
    if (text === "") continue;
    // A carriage return ended its line already, so what may follow it belongs to it.
    if (afterReturn && text.startsWith("\n")) text = text.slice(1);
    afterReturn = text.endsWith("\r");
    const lines = (rest + text).split(/\r\n|\r|\n/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line !== "") {
        block.add(line);
        continue;
      }
      const event = block.event();
      block = new Block();
      if (event !== undefined) yield event;
    }
    if (rest.length > MAX_EVENT_CHARS) throw tooLong();
  }
}

/** The lines of one event. */
class Block {
  #event = "";
  #id: string | undefined;
  #data: string[] = [];
  #chars = 0;

  add(line: string): void {
    this.#chars += line.length;
    if (this.#chars > MAX_EVENT_CHARS) throw tooLong();
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.#event = value.trim();
    else if (name === "data") this.#data.push(value);
    else if (name === "id" && !value.includes("\0")) this.#id = value;
  }

  event(): RawEvent | undefined {
    if (this.#data.length === 0) return undefined;
    return { event: this.#event, data: this.#data.join("\n"), id: this.#id };
  }
}

function tooLong(): PeerFault {
  return new PeerFault(TOO_MUCH, "the endpoint sent an event that is too long");
}
