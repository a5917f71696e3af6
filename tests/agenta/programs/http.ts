import { generateKeyPairSync } from "node:crypto";

// biome-ignore lint/suspicious/noExplicitAny: plain JSON, as any program would have it
export type Json = any;

/** Posts JSON and returns the status and JSON of the response, without Depute's code. */
export async function post(address: string, body: unknown): Promise<{ status: number; body: Json }> {
  const response = await fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

/** Calls an RPC of the platform by the Connect protocol, which is also a POST of JSON. */
export async function call(url: string, method: string, body: unknown): Promise<Json> {
  const answer = await post(`${url}/depute.${method}`, body);
  if (answer.status === 200) return answer.body;
  throw new Error(`${method}: ${answer.status} ${JSON.stringify(answer.body)}`);
}

/** Registers an agent of this process under a new Ed25519 key, in base64url. @returns the key */
export async function register(url: string, id: string, organization: string): Promise<string> {
  const { x: principal = "" } = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
  const agent = { id, version: "1.0.0", organization, principal };
  const request = { requestId: crypto.randomUUID(), agent };
  await call(url, "registry.v1.AgentService/RegisterAgent", request);
  return principal;
}

/** Follows an execution's receipts as server-sent events. */
export async function* receipts(
  url: string,
  requestId: string,
): AsyncGenerator<{ event: string; data: Json }> {
  const response = await fetch(`${url}/agenta/execution_requests/${requestId}/receipts`, {
    headers: { accept: "text/event-stream" },
  });
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const fields = text
        .slice(0, end)
        .split("\n")
        .map((line) => line.split(/: (.*)/s));
      text = text.slice(end + 2);
      const field = (name: string) => fields.find(([key]) => key === name)?.[1];
      const data = field("data");
      if (data !== undefined) yield { event: field("event") ?? "", data: JSON.parse(data) };
    }
  }
}

export function say(line: Json): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
