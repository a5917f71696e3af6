const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

/** Number of attempts of one call. Each process that ends may refuse one. */
const MAX_ATTEMPTS = 15;

export type Json = Record<string, unknown>;

/**
 * A client that shares no code with the platform: JSON over HTTP. It repeats calls that the platform refuses as
 * unavailable or does not answer, and counts them.
 */
export class JsonClient {
  /** How often each code refused a call. `connection` stands for a call without an answer. */
  readonly refusals = new Map<string, number>();
  /** Number of calls that succeeded. */
  calls = 0;
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  /**
   * Calls a method until it succeeds.
   *
   * @throws Error for a refusal that is not UNAVAILABLE, and after the last attempt
   */
  async call(method: string, request: Json): Promise<Json> {
    for (let attempt = 1; ; attempt++) {
      const { code, answer } = await this.#once(method, request);
      if (code === undefined) {
        this.calls++;
        return answer;
      }
      this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1);
      const isOver = attempt === MAX_ATTEMPTS || (code !== "unavailable" && code !== "connection");
      if (isOver) throw new Error(`${method}: ${JSON.stringify(answer)}`);
      await pause(100);
    }
  }

  async #once(method: string, request: Json): Promise<{ code?: string; answer: Json }> {
    try {
      const answer = await fetch(`${this.#url}/${method}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(request),
      });
      const body = (await answer.json()) as Json;
      if (answer.ok) return { answer: body };
      return { code: String(body.code), answer: body };
    } catch (error) {
      return { code: "connection", answer: { message: String((error as Error).cause ?? error) } };
    }
  }
}
