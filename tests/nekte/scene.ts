import { holderHeaders, WorkFailure, WorkSuspension } from "@depute/client";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, expect } from "vitest";
import { call, error, introduce, result, startPlatform, type TestPlatform } from "../gateway/platform.ts";

export const TEXT = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
const OTHER = { type: "object", properties: { other: { type: "string" } } };

export const CONTEXT = { permissions: { forward: false, persist: false, derive: true }, ttl_s: 3600 };

/** The data of what came along with the work. */
export function dataOf(contexts: readonly { envelope?: { data: Uint8Array } | undefined }[]) {
  const [data] = contexts.map(({ envelope }) => new TextDecoder().decode(envelope?.data));
  return JSON.parse(data ?? "null");
}

let made = 0;
/** Parameters of a delegation, each under an id of its own. */
export function work(desc = "x", more: object = {}) {
  return {
    task: { id: `task-${++made}`, desc, timeout_ms: 20_000, ...more },
    context: { data: { reviews: 3 }, ...CONTEXT },
  };
}

/** The same work with a context that may be persisted. */
export function lasting<Params extends ReturnType<typeof work>>(params: Params): Params {
  return {
    ...params,
    context: { ...params.context, permissions: { ...CONTEXT.permissions, persist: true } },
  };
}

/** The frames of a stream, read until one begins so or it ends. */
export async function frames(response: Response, until?: string): Promise<string[]> {
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const read: string[] = [];
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = parts.pop() ?? "";
    read.push(...parts);
    if (until !== undefined && read.some((frame) => frame.includes(until))) return read;
  }
  expect(rest).toBe("");
  return read;
}

/** A platform with two agents for the tests of a file, and what they call it with. */
export class Scene {
  /** Works that wait until a test lets them go on, by the task's external id. */
  readonly held = new Map<string, () => void>();
  #platform: TestPlatform | undefined;

  constructor() {
    beforeAll(() => this.#start());
    afterAll(() => this.#platform?.stop());
  }

  get platform(): TestPlatform {
    if (this.#platform === undefined) throw new Error("the platform is not up yet");
    return this.#platform;
  }

  nekte = (method: string, params?: unknown, path = "/nekte") =>
    this.platform.post(path, call(method, params));

  /** The refusal of a delegation, as a client reads it that takes JSON alone. */
  refused = (params: unknown, path = "/nekte/nlp-worker", headers: Record<string, string> = {}) =>
    error(
      this.platform.post(path, call("nekte.delegate", params), { accept: "application/json", ...headers }),
    );

  status = (taskId: string) => result(this.nekte("nekte.task.status", { task_id: taskId }));

  /** Tasks that the platform has, to see that nothing was stored. */
  countTasks = async () => (await this.platform.clients.tasks.listTasks({ pageSize: 1000 })).tasks.length;

  /** Somebody with a key. */
  holder = () => ({ engine, keypair: generateKeypair(engine), publicUrl: this.platform.url });

  /** Calls a method with a proof of possession. */
  postAs = (by: ReturnType<Scene["holder"]>, method: string, params: unknown, path = "/nekte/nlp-worker") =>
    this.platform.post(path, call(method, params), holderHeaders(by, path));

  async #start(): Promise<void> {
    const platform = await startPlatform();
    this.#platform = platform;
    const { held } = this;
    await introduce(platform, "nlp-worker", [
      ["sentiment", TEXT, { avgMs: 200 }],
      ["shared"],
      ["fails"],
      ["long"],
    ]);
    await introduce(platform, "other", [["shared", OTHER]]);
    platform.work("nlp-worker", async (input, { task, progress, partial, signal, saved, contexts }) => {
      switch (task.capabilityId) {
        case "sentiment":
          return { output: { label: "mixed", score: 0.62 }, minimal: "mixed" };
        case "fails":
          throw new WorkFailure("NO_LEXICON", "there is no lexicon", false);
        case "long":
          return {
            output: { text: "x".repeat(4000) },
            compact: { text: "x".repeat(200) },
            minimal: "x".repeat(40),
          };
        default:
      }
      if (task.description === "suspend") {
        if (saved === undefined) throw new WorkSuspension("later", { done: 1 });
        return { output: { saved }, minimal: "done" };
      }
      await progress(1, 2, "half");
      await partial({ so: "far" });
      if (task.description === "wait") {
        await new Promise<void>((resolve) => {
          held.set(task.externalId, resolve);
          signal.addEventListener("abort", () => resolve(), { once: true });
        });
      }
      return { output: { got: contexts.length === 0 ? input : dataOf(contexts) }, minimal: "done" };
    });
    platform.work("other", async (input) => ({ output: { other: input } }));
  }
}
