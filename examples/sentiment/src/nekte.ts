import { bar, type Screen } from "./draw.ts";

/** One event of an SSE stream. */
interface SseEvent {
  event: string;
  data: Record<string, unknown>;
}

/**
 * Delegates the same work to the agent's own address over NEKTE's JSON-RPC and SSE. Uses only fetch.
 *
 * @returns the data of the `complete` event
 * @throws Error when the stream ends with any other event
 */
export async function delegateOverNekte(
  url: string,
  agentId: string,
  texts: readonly string[],
  screen: Screen,
): Promise<Record<string, unknown>> {
  const address = `${url}/nekte/${agentId}`;
  const discovered = await call(address, 1, "nekte.discover", { level: 0 });
  screen.say(`  discovered at level 0: ${await discovered.text()}`);
  const stream = await call(address, 2, "nekte.delegate", {
    task: {
      id: `nekte-${crypto.randomUUID()}`,
      desc: `Analyze sentiment of ${texts.length} texts`,
      timeout_ms: 60_000,
      budget: { max_tokens: 500, detail_level: "compact" },
    },
    context: { data: { texts }, permissions: { forward: false, persist: true, derive: true }, ttl_s: 3600 },
  });
  for await (const { event, data } of events(stream)) {
    if (event === "progress")
      screen.show(bar(Number(data.processed), Number(data.total), String(data.message)));
    else screen.say(`  ${event}: ${JSON.stringify(data)}`);
    if (event === "complete") return data;
  }
  throw new Error("the stream ended without a result");
}

function call(address: string, id: number, method: string, params: unknown): Promise<Response> {
  return fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id, method, params }),
  });
}

async function* events(response: Response): AsyncGenerator<SseEvent> {
  if (!response.headers.get("content-type")?.startsWith("text/event-stream") || response.body === null) {
    throw new Error(`no stream but ${response.status}: ${await response.text()}`);
  }
  let rest = "";
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const frames = (rest + chunk).split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      const event = /^event: (.*)$/m.exec(frame)?.[1];
      const data = /^data: (.*)$/m.exec(frame)?.[1];
      if (event !== undefined && data !== undefined) yield { event, data: JSON.parse(data) };
    }
  }
}
