/**
 * One participant of CAP's example, in a separate process. It reads its inbox by server-sent events, and sends each of
 * its messages after the awaited message has arrived. It uses only HTTP and its own secret. `node player.ts <url> <id>
 * [secret]`: stdin has, as JSON, the participant's steps and the sequence after which its inbox begins. stdout gets the
 * sent and received messages, one per line.
 */
import type { CapDocument, Part } from "./play.ts";

/** One line of output of a participant's process. */
export type PlayerReport =
  | {
      readonly sent: CapDocument;
      readonly status: number;
      readonly answer: Readonly<Record<string, unknown>>;
    }
  | { readonly heard: CapDocument; readonly sequence: number; readonly origin: string };

interface Entry {
  readonly sequence: number;
  readonly origin: string;
  readonly message: CapDocument;
}

const [url = "", id = "", secret = ""] = process.argv.slice(2);
const credentials: Record<string, string> = secret === "" ? {} : { authorization: `Bearer ${secret}` };

async function send(message: CapDocument): Promise<void> {
  const response = await fetch(`${url}/cap/messages`, {
    method: "POST",
    headers: { ...credentials, "content-type": "application/json", "idempotency-key": crypto.randomUUID() },
    body: JSON.stringify(message),
  });
  print({
    sent: message,
    status: response.status,
    answer: (await response.json()) as Record<string, unknown>,
  });
}

function print(report: PlayerReport): void {
  process.stdout.write(`${JSON.stringify(report)}\n`);
}

async function* inbox(): AsyncGenerator<Entry> {
  const headers = { ...credentials, accept: "text/event-stream" };
  const response = await fetch(`${url}/cap/inbox/${id}?after=${start}`, { headers });
  let buffer = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    buffer += decoder.decode(chunk, { stream: true });
    for (let end = buffer.indexOf("\n\n"); end >= 0; end = buffer.indexOf("\n\n")) {
      const data = /^data: (.*)$/m.exec(buffer.slice(0, end))?.[1];
      buffer = buffer.slice(end + 2);
      if (data !== undefined) yield JSON.parse(data) as Entry;
    }
  }
}

let text = "";
for await (const chunk of process.stdin) text += chunk;
const { parts, start } = JSON.parse(text) as { readonly parts: readonly Part[]; readonly start: number };

const waiting = [...parts];
const play = async () => {
  for (const message of waiting.shift()?.send ?? []) await send(message);
};
if (waiting[0]?.after === undefined) await play();
for await (const { sequence, origin, message } of inbox()) {
  print({ heard: message, sequence, origin });
  const cue = waiting[0]?.after;
  const isCue =
    cue?.type === message.type && cue?.sender === message.sender_id && cue?.task === message.task_id;
  if (isCue) await play();
}
