import { holderHeaders, WorkFailure, WorkSuspension } from "@depute/client";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, expect } from "vitest";
import { call, error, introduce, result, startPlatform, type TestPlatform } from "../gateway/platform.ts";

export const TEXT = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
const OTHER = { type: "object", properties: { other: { type: "string" } } };

export const CONTEXT = { permissions: { forward: false, persist: false, derive: true }, ttl_s: 3600 };

/** Returns the data of a task's first context; null if the task has none. */
export function dataOf(contexts: readonly { envelope?: { data: Uint8Array } | undefined }[]) {
  const [data] = contexts.map(({ envelope }) => new TextDecoder().decode(envelope?.data));
  return JSON.parse(data ?? "null");
}

let taskCount = 0;
/** Makes the parameters of a delegation. Each has a new task id. */
export function work(desc = "x", more: object = {}) {
  return {
    task: { id: `task-${++taskCount}`, desc, timeout_ms: 20_000, ...more },
    context: { data: { reviews: 3 }, ...CONTEXT },
  };
}

/** Returns the same delegation with a context that may be persisted. */
export function lasting<Params extends ReturnType<typeof work>>(params: Params): Params {
  return {
    ...params,
    context: { ...params.context, permissions: { ...CONTEXT.permissions, persist: true } },
  };
}

/** Reads the frames of a stream until a frame contains `until`, or until the stream ends. */
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

/** A platform with two agents, and clients for its calls. The tests of one file share it. */
export class Scene {
  /** Functions that release waiting tasks, by external id. */
  readonly heldCalls = new Map<string, () => void>();
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

  /** Returns the error of a refused delegation. The client accepts only JSON. */
  refused = (params: unknown, path = "/nekte/nlp-worker", headers: Record<string, string> = {}) =>
    error(
      this.platform.post(path, call("nekte.delegate", params), { accept: "application/json", ...headers }),
    );

  status = (taskId: string) => result(this.nekte("nekte.task.status", { task_id: taskId }));

  /** Returns the number of the platform's tasks. Tests compare it to check that a refusal stored no task. */
  countTasks = async () => (await this.platform.clients.tasks.listTasks({ pageSize: 1000 })).tasks.length;

  /** Makes a holder with a new key. */
  holder = () => ({ engine, keypair: generateKeypair(engine), publicUrl: this.platform.url });

  /** Calls a method as a holder, with a proof of possession. */
  postAs = (by: ReturnType<Scene["holder"]>, method: string, params: unknown, path = "/nekte/nlp-worker") =>
    this.platform.post(path, call(method, params), holderHeaders(by, path));

  async #start(): Promise<void> {
    const platform = await startPlatform();
    this.#platform = platform;
    const { heldCalls } = this;
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
          heldCalls.set(task.externalId, resolve);
          if (signal.aborted) resolve();
          else signal.addEventListener("abort", () => resolve(), { once: true });
        });
      }
      return { output: { got: contexts.length === 0 ? input : dataOf(contexts) }, minimal: "done" };
    });
    platform.work("other", async (input) => ({ output: { other: input } }));
  }
}
