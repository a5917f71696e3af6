import type { Json } from "../gateway/platform.ts";

/** A stream of server-sent events, read without an SDK. */
export interface EventStream {
  readonly status: number;
  /** Returns the next message; undefined at the end of the stream. */
  next(): Promise<Json | undefined>;
  close(): void;
}

/** Sends a request, and reads the messages of its answer. An answer without a stream has one message. */
export async function openStream(url: string, headers: Headers, body: Json): Promise<EventStream> {
  const leaving = new AbortController();
  const answer = await fetch(url, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
    signal: leaving.signal,
  });
  const isStream = answer.headers.get("content-type")?.startsWith("text/event-stream") === true;
  const messages = isStream ? events(answer) : one(answer);
  return {
    status: answer.status,
    next: async () => (await messages.next()).value,
    close: () => leaving.abort(),
  };
}

async function* one(answer: Response): AsyncGenerator<Json, undefined> {
  yield await answer.json();
}

async function* events(answer: Response): AsyncGenerator<Json, undefined> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    const frames = text.split("\n\n");
    text = frames.pop() ?? "";
    for (const frame of frames) {
      const data = /^data: (.*)$/m.exec(frame)?.[1];
      if (data !== undefined) yield JSON.parse(data);
    }
  }
}
