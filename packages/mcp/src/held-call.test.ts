import { ManualClock } from "@depute/core";
import { describe, expect, test } from "vitest";
import { AskBridge, callOwner, UnknownState } from "./ask-bridge.ts";
import type { CallOptions } from "./call-options.ts";
import { HELD_MS } from "./held-call.ts";

const TIMEOUT_MS = 1000;
const CAPABLE = { clientCapabilities: { sampling: {}, elicitation: { form: {} } } };
const SAMPLING = "sampling/createMessage";

type Serve = (ask: NonNullable<CallOptions["ask"]>, signal: AbortSignal) => Promise<Record<string, unknown>>;

/** Creates a bridge to a server that answers each call with `serve`. */
function bridgeTo(serve: Serve) {
  const clock = new ManualClock();
  const connected: object[] = [];
  const bridge = new AskBridge({
    timers: clock,
    timeoutMs: TIMEOUT_MS,
    isPerSession: false,
    isAllowed: (method) => method !== "roots/list",
    connect: (capabilities) => {
      connected.push(capabilities);
      return {
        send: (_method, _params, { ask, signal }) => {
          if (ask === undefined || signal === undefined) throw new Error("the call cannot ask");
          return serve(ask, signal);
        },
        close: async () => {},
      };
    },
  });
  const begin = (options: CallOptions = CAPABLE, owner = "owner") =>
    bridge.request("tools/call", { name: "x" }, options, () => owner);
  const resume = (requestState: unknown, inputResponses: unknown, owner = "owner") =>
    bridge.request("tools/call", { name: "x", requestState, inputResponses }, CAPABLE, () => owner);
  return { clock, bridge, connected, begin, resume };
}

/** Waits until the proxy has gathered the server's requests of one round. */
async function gathered(clock: ManualClock, call: Promise<unknown> | undefined) {
  let isDone = false;
  void call?.finally(() => (isDone = true)).catch(() => {});
  for (let i = 0; i < 100 && !isDone; i++) {
    await Promise.resolve();
    clock.advance(1);
  }
  return (await call) as { resultType?: string; inputRequests?: object; requestState?: string };
}

const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));

describe("a server's request during a call", () => {
  test("becomes a result that requires input, and the answer continues the call", async () => {
    const { clock, begin, resume } = bridgeTo(async (ask) => {
      const name = await ask(SAMPLING, { of: "name" });
      const age = await ask("elicitation/create", { of: "age" });
      return { name, age };
    });
    const first = await gathered(clock, begin());
    expect(first).toEqual({
      resultType: "input_required",
      inputRequests: { "request-1": { method: SAMPLING, params: { of: "name" } } },
      requestState: expect.any(String),
    });
    const second = await gathered(clock, resume(first.requestState, { "request-1": "Ada", other: 1 }));
    expect(second.inputRequests).toEqual({
      "request-2": { method: "elicitation/create", params: { of: "age" } },
    });
    expect(await resume(second.requestState, { "request-2": 36 })).toEqual({ name: "Ada", age: 36 });
  });

  test("is combined with the others of its round; unanswered ones are repeated", async () => {
    const { clock, begin, resume } = bridgeTo(async (ask) => ({
      both: await Promise.all([ask(SAMPLING, 1), ask(SAMPLING, 2)]),
    }));
    const first = await gathered(clock, begin());
    expect(Object.keys(first.inputRequests ?? {})).toEqual(["request-1", "request-2"]);
    const second = await gathered(clock, resume(first.requestState, { "request-2": "b" }));
    expect(Object.keys(second.inputRequests ?? {})).toEqual(["request-1"]);
    expect(await resume(second.requestState, { "request-1": "a" })).toEqual({ both: ["a", "b"] });
  });
});

describe("a requestState", () => {
  const asking: Serve = async (ask) => ({ answer: await ask(SAMPLING, {}) });

  test("is valid once", async () => {
    const { clock, begin, resume } = bridgeTo(asking);
    const { requestState } = await gathered(clock, begin());
    await resume(requestState, { "request-1": 1 });
    await expect(resume(requestState, { "request-1": 2 })).rejects.toThrow(UnknownState);
  });

  test("is valid for its caller alone, and another caller's attempt does not end it", async () => {
    const { clock, begin, resume } = bridgeTo(asking);
    const { requestState } = await gathered(clock, begin());
    await expect(resume(requestState, { "request-1": 1 }, "another")).rejects.toThrow(UnknownState);
    expect(await resume(requestState, { "request-1": 2 })).toEqual({ answer: 2 });
  });

  test.each(["unknown", "", 7, null])("%j is unknown", async (requestState) => {
    const { resume } = bridgeTo(asking);
    await expect(resume(requestState, {})).rejects.toThrow(UnknownState);
  });

  test("belongs to one method and one set of parameters", () => {
    const one = callOwner("token", "tools/call", { name: "x", arguments: { a: 1 } });
    const again = { name: "x", arguments: { a: 1 }, requestState: "s", inputResponses: {}, _meta: { b: 1 } };
    expect(callOwner("token", "tools/call", again)).toBe(one);
    expect(callOwner("token", "tools/call", { name: "x", arguments: { a: 2 } })).not.toBe(one);
    expect(callOwner("token", "prompts/get", again)).not.toBe(one);
    expect(callOwner("another", "tools/call", again)).not.toBe(one);
  });
});

describe("the time", () => {
  test("of the server's own work is limited in each round", async () => {
    const { clock, begin } = bridgeTo((_, signal) => untilAborted(signal));
    const call = begin();
    clock.advance(TIMEOUT_MS);
    await expect(call).rejects.toMatchObject({ fault: { kind: "timeout" } });
  });

  test("of a client's answers is limited: the call is cancelled, and its state unknown", async () => {
    let isCancelled = false;
    const { clock, begin, resume } = bridgeTo((ask, signal) => {
      signal.addEventListener("abort", () => {
        isCancelled = true;
      });
      return Promise.race([ask(SAMPLING, {}) as Promise<never>, untilAborted(signal)]);
    });
    const { requestState } = await gathered(clock, begin());
    clock.advance(HELD_MS - 1000);
    expect(isCancelled).toBe(false);
    clock.advance(1000);
    expect(isCancelled).toBe(true);
    await Promise.resolve();
    await new Promise(setImmediate);
    await expect(resume(requestState, {})).rejects.toThrow(UnknownState);
  });

  test("ends when the caller disconnects", async () => {
    const { begin } = bridgeTo((_, signal) => untilAborted(signal));
    const caller = new AbortController();
    const call = begin({ ...CAPABLE, signal: caller.signal });
    caller.abort();
    await expect(call).rejects.toThrow("aborted");
  });
});

describe("a connection to the server", () => {
  test("has the capabilities that the client declared and the map allows, and is shared by equal clients", async () => {
    const { begin, connected } = bridgeTo(async () => ({}));
    await begin();
    await begin({ clientCapabilities: { ...CAPABLE.clientCapabilities, roots: {}, experimental: { a: 1 } } });
    await begin({ clientCapabilities: { sampling: { tools: {}, other: {} } } });
    expect(connected).toEqual([{ sampling: {}, elicitation: { form: {} } }, { sampling: { tools: {} } }]);
  });

  test.each([{}, { clientCapabilities: {} }, { clientCapabilities: { roots: {} } }])(
    "is not needed for %j",
    (options) => {
      const { begin, connected } = bridgeTo(async () => ({}));
      expect(begin(options)).toBeUndefined();
      expect(connected).toEqual([]);
    },
  );
});
