/**
 * One participant of the text's example, in a process of its own: it follows its inbox by server-sent events, and sends what
 * the text has it send when it has heard what the text has it hear. It knows nothing but HTTP and its own secret.
 *
 * `node player.ts <url> <id> <decision|words>`; its parts of the play come as JSON on stdin, and what it sent and heard goes
 * to stdout, a line each.
 */
import type { JsonObject } from "@bufbuild/protobuf";

/** What a participant does: after it heard what it waits for, it sends. */
export interface Part {
  /** The type, sender and task of what it waits for; absent for who begins. */
  readonly after?: { readonly type: string; readonly sender: string; readonly task: string };
  readonly send: readonly JsonObject[];
}

interface Heard {
  readonly sequence: number;
  readonly message: JsonObject;
}

const [url = "", id = "", secret = ""] = process.argv.slice(2);
const authorization = `Bearer ${secret}`;

let text = "";
for await (const chunk of process.stdin) text += chunk;
const parts = JSON.parse(text) as readonly Part[];

async function send(message: JsonObject): Promise<void> {
  const response = await fetch(`${url}/cap/messages`, {
    method: "POST",
    headers: { authorization, "content-type": "application/json", "idempotency-key": crypto.randomUUID() },
    body: JSON.stringify(message),
  });
  const answer = (await response.json()) as JsonObject;
  tell({
    sent: message.type,
    task: message.task_id,
    to: message.recipient_id,
    status: response.status,
    answer,
  });
}

function tell(line: unknown): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

async function* inbox(): AsyncGenerator<Heard> {
  const response = await fetch(`${url}/cap/inbox/${id}`, {
    headers: { authorization, accept: "text/event-stream" },
  });
  let buffer = "";
  for await (const chunk of response.body ?? []) {
    buffer += new TextDecoder().decode(chunk);
    for (let end = buffer.indexOf("\n\n"); end >= 0; end = buffer.indexOf("\n\n")) {
      const data = /^data: (.*)$/m.exec(buffer.slice(0, end))?.[1];
      buffer = buffer.slice(end + 2);
      if (data !== undefined) yield JSON.parse(data) as Heard;
    }
  }
}

const waiting = [...parts];
const play = async () => {
  const next = waiting.shift();
  for (const message of next?.send ?? []) await send(message);
};
if (waiting[0]?.after === undefined) await play();
for await (const { sequence, message } of inbox()) {
  tell({ heard: message.type, task: message.task_id, from: message.sender_id, sequence });
  const after = waiting[0]?.after;
  const isCue =
    after?.type === message.type && after?.sender === message.sender_id && after?.task === message.task_id;
  if (isCue) await play();
}
