// biome-ignore lint/suspicious/noExplicitAny: what a published client does not look at, nobody looks at here
type Json = any;

/** The error that a published client throws for a JSON-RPC error. */
export class NekteError extends Error {
  readonly code: number;
  readonly data: Json;

  constructor({ code, message, data }: { code: number; message: string; data?: Json }) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** An event in the form in which published clients read it. */
export interface ReadEvent {
  readonly event: string;
  readonly data: Json;
}

/**
 * Repeats the wire behaviour of NEKTE's published TypeScript client. The client posts every call to one address,
 * accepts any answer, and discards the body of an error status. The client caches hashes, and repeats a call
 * without the hash if the hash is outdated.
 */
export class TypeScriptClient {
  readonly #endpoint: string;
  readonly #hashes = new Map<string, string>();
  #agent: string | undefined;
  #id = 0;

  constructor(endpoint: string) {
    this.#endpoint = endpoint.replace(/\/$/, "");
  }

  async agentCard(): Promise<Json> {
    const response = await fetch(`${this.#endpoint}/.well-known/nekte.json`);
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    const card: Json = await response.json();
    this.#agent = card.agent;
    return card;
  }

  async discover(level: 0 | 1 | 2, filter?: Json): Promise<Json> {
    const result = await this.call("nekte.discover", { level, filter });
    // The client caches hashes only after it has identified the agent.
    if (this.#agent !== undefined) for (const { id, h } of result.caps) this.#hashes.set(id, h);
    this.#agent ??= result.agent;
    return result;
  }

  async invoke(cap: string, input: Json, budget?: Json): Promise<Json> {
    const wantedBudget = { max_tokens: 500, detail_level: "compact", ...budget };
    try {
      return await this.call("nekte.invoke", {
        cap,
        h: this.#hashes.get(cap),
        in: input,
        budget: wantedBudget,
      });
    } catch (thrown) {
      if (!(thrown instanceof NekteError) || thrown.code !== -32001) throw thrown;
      const { schema } = thrown.data ?? {};
      if (schema !== undefined) this.#hashes.set(schema.id, schema.h);
      return this.call("nekte.invoke", { cap, in: input, budget: wantedBudget });
    }
  }

  /** Returns the cached hash of a capability. */
  hashOf(cap: string): string | undefined {
    return this.#hashes.get(cap);
  }

  remember(cap: string, hash: string): void {
    this.#hashes.set(cap, hash);
  }

  async *delegate(task: Json, context?: Json): AsyncGenerator<ReadEvent> {
    const budget = { max_tokens: 500, detail_level: "compact", ...task.budget };
    const response = await this.#post("nekte.delegate", { task: { ...task, budget }, context });
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) {
        const event = readBlock(part);
        if (event !== undefined) yield event;
      }
    }
    const last = readBlock(rest);
    if (last !== undefined) yield last;
  }

  cancelTask = (task_id: string, reason?: string) => this.call("nekte.task.cancel", { task_id, reason });
  resumeTask = (task_id: string, budget?: Json) => this.call("nekte.task.resume", { task_id, budget });
  taskStatus = (task_id: string) => this.call("nekte.task.status", { task_id });
  verify = (task_id: string, checks = ["hash", "sample", "source"]) =>
    this.call("nekte.verify", { task_id, checks, budget: undefined });

  async call(method: string, params: Json): Promise<Json> {
    const { result, error }: Json = await (await this.#post(method, params)).json();
    if (error) throw new NekteError(error);
    return result;
  }

  async #post(method: string, params: Json): Promise<Response> {
    const response = await fetch(this.#endpoint, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", method, id: ++this.#id, params }),
    });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    return response;
  }
}

/** Reads an event with one data line and a space after the colon, because the published clients parse no other form. */
export function readBlock(block: string): ReadEvent | undefined {
  let event = "";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) event = line.slice("event: ".length).trim();
    else if (line.startsWith("data: ")) data = line.slice("data: ".length);
  }
  return event === "" || data === "" ? undefined : { event, data: JSON.parse(data) };
}

/**
 * Repeats the wire behaviour of NEKTE's published Python client. The client sends omitted members as null and
 * seconds with a decimal point. The client refuses answers that do not match its models.
 */
export class PythonClient {
  readonly #endpoint: string;
  #id = 0;

  constructor(endpoint: string) {
    this.#endpoint = endpoint.replace(/\/+$/, "");
  }

  async agentCard(): Promise<Json> {
    const card: Json = await (await fetch(`${this.#endpoint}/.well-known/nekte.json`)).json();
    fits(card, { agent: "string", endpoint: "string", caps: "array" });
    fits(card, { nekte: "string?", auth: "string?", budget_support: "boolean?" });
    return card;
  }

  async discover(level: 0 | 1 | 2, filter: Json = null): Promise<Json> {
    const result = await this.call("nekte.discover", { level, filter });
    fits(result, { agent: "string", v: "string?", caps: "array" });
    // The Python client's cache accepts only capabilities that have all three members.
    for (const each of result.caps) fits(each, { id: "string", cat: "string", h: "string" });
    return result;
  }

  async invoke(cap: string, input: Json, h?: string): Promise<Json> {
    const budget = { max_tokens: 500, detail_level: "compact" };
    const params = { cap, in: input, budget, ...(h === undefined ? {} : { h }) };
    const result = await this.call("nekte.invoke", params);
    fits(result, { out: "object", resolved_level: "string?", meta: "object?" });
    return result;
  }

  async delegate(task: Json, context: Json = null): Promise<ReadEvent[]> {
    const response = await this.#post("nekte.delegate", { task, context });
    const blocks = (await response.text()).split("\n\n").map((block) => block.trim());
    return blocks.map(readBlock).filter((event) => event !== undefined);
  }

  async cancelTask(task_id: string, reason: string | null = null): Promise<Json> {
    const result = await this.call("nekte.task.cancel", { task_id, reason });
    fits(result, { task_id: "string", status: "string", previous_status: "string" });
    return result;
  }

  async taskStatus(task_id: string): Promise<Json> {
    const result = await this.call("nekte.task.status", { task_id });
    fits(result, {
      task_id: "string",
      status: "string",
      progress: "object?",
      checkpoint_available: "boolean",
    });
    // The Python client's model requires numbers for these members.
    fits(result, { created_at: "number", updated_at: "number" });
    return result;
  }

  async call(method: string, params: Json): Promise<Json> {
    const answer: Json = await (await this.#post(method, params)).json();
    if (answer.jsonrpc !== "2.0" || !["string", "number"].includes(typeof answer.id))
      throw new Error("no answer");
    if (answer.error) {
      fits(answer.error, { code: "number", message: "string" });
      throw new NekteError(answer.error);
    }
    return answer.result;
  }

  async #post(method: string, params: Json): Promise<Response> {
    const text = JSON.stringify({ jsonrpc: "2.0", method, id: ++this.#id, params });
    // The Python client keeps times to live as floating-point numbers, and writes them with a decimal point.
    const body = text.replaceAll(/"ttl_s":(\d+)(?=[,}])/g, '"ttl_s":$1.0');
    const response = await fetch(this.#endpoint, {
      method: "POST",
      headers: { "Content-Type": "application/json", accept: "*/*" },
      body,
    });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    return response;
  }
}

/** Throws if a member does not have the type that the model states. `?` marks a member that may be null or absent. */
function fits(value: Json, model: Readonly<Record<string, string>>): void {
  for (const [name, kind] of Object.entries(model)) {
    const member = value?.[name];
    if (kind.endsWith("?") && (member === undefined || member === null)) continue;
    const actual = Array.isArray(member) ? "array" : member === null ? "null" : typeof member;
    if (actual !== kind.replace("?", "")) throw new Error(`${name} is ${actual}, and has to be ${kind}`);
  }
}
