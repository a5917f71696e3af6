import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { DeputeError, ErrorReason, ManualClock } from "@depute/core";
import { describe, expect, it } from "vitest";
import { CallEnd, callEndKey } from "./call-end.ts";
import { deadlineKey } from "./call-values.ts";
import { deadlineInterceptor, requestedTimeout } from "./deadlines.ts";
import type { Next } from "./interceptors/outcome.ts";
import { EchoService } from "./testing/echo.ts";

const never = new Promise<string>(() => {});
const late = new ConnectError("too late", Code.DeadlineExceeded);

describe("the end of a call", () => {
  it("is its answer, if that comes first", async () => {
    const end = new CallEnd();
    expect(await end.race(Promise.resolve("answer"))).toBe("answer");
    end.settle();
    end.abort(late);
    end.leave();
    expect(end.signal.aborted).toBe(false);
  });

  it("is the handler's error, if that comes first", async () => {
    await expect(new CallEnd().race(Promise.reject(late))).rejects.toBe(late);
  });

  it("is its deadline, also if the handler ignores the signal", async () => {
    const end = new CallEnd();
    const race = end.race(never);
    end.abort(late);
    end.leave();
    await expect(race).rejects.toBe(late);
    expect(end.signal.reason).toBe(late);
  });

  it("ends every promise that is raced", async () => {
    const end = new CallEnd();
    const races = [end.race(never), end.race(never)];
    end.abort(late);
    expect(await Promise.allSettled(races)).toMatchObject([{ reason: late }, { reason: late }]);
  });

  it("is the caller's cancellation", async () => {
    const end = new CallEnd();
    end.leave();
    end.abort(late);
    await expect(end.race(never)).rejects.toMatchObject({ code: Code.Canceled });
    expect(end.signal.aborted).toBe(true);
  });
});

function setUp(
  header: Record<string, string>,
  { stream = false, end, ownMs }: { stream?: boolean; end?: CallEnd | undefined; ownMs?: number } = {},
) {
  const clock = new ManualClock(1000);
  const observed: { signal?: AbortSignal } = {};
  let finish: () => void = () => {};
  const next = ((request: { signal: AbortSignal }) => {
    observed.signal = request.signal;
    return new Promise((resolve) => {
      finish = () => resolve({ stream });
    });
  }) as unknown as Next;
  const contextValues = createContextValues().set(callEndKey, end);
  const { name } = EchoService.method.unary;
  const manners = new Map(
    ownMs === undefined ? [] : [[EchoService.typeName, { timeoutsMs: { [name]: ownMs } }]],
  );
  const interceptor = deadlineInterceptor({ defaultMs: 100, maxMs: 500, manners, clock, timers: clock });
  const request = {
    stream,
    service: EchoService,
    method: EchoService.method.unary,
    header: new Headers(header),
    contextValues,
    signal: end?.signal ?? new AbortController().signal,
  };
  const answer = interceptor(next)(request as never);
  answer.catch(() => {});
  return { clock, seen: observed, answer, finish: () => finish(), due: () => contextValues.get(deadlineKey) };
}

describe("deadlineInterceptor", () => {
  it.each([
    [{}, 100],
    [{ "connect-timeout-ms": "50" }, 50],
    [{ "connect-timeout-ms": "300" }, 300],
    [{ "connect-timeout-ms": "9999" }, 500],
    [{ "grpc-timeout": "1H" }, 500],
    [{ "grpc-timeout": "20m" }, 20],
    [{ "connect-timeout-ms": "soon" }, 100],
  ])("with %j ends a unary call after %i ms", async (header, limit) => {
    for (const end of [undefined, new CallEnd()]) {
      const { clock, seen, answer, due } = setUp(header, { end });
      expect(due()).toBe(1000 + limit);
      clock.advance(limit - 1);
      expect(seen.signal?.aborted).toBe(false);
      clock.advance(1);
      await expect(answer).rejects.toThrow(DeputeError);
      await expect(answer).rejects.toMatchObject({ reason: ErrorReason.DEADLINE_EXCEEDED });
      expect(seen.signal?.aborted).toBe(true);
    }
  });

  it.each([
    [{}, 2000],
    [{ "connect-timeout-ms": "1500" }, 1500],
    [{ "connect-timeout-ms": "9999" }, 2000],
  ])("with %j ends a call of a waiting method after %i ms", (header, limit) => {
    expect(setUp(header, { ownMs: 2000 }).due()).toBe(1000 + limit);
  });

  it("clears its timer when the call is answered", async () => {
    for (const end of [undefined, new CallEnd()]) {
      const { clock, answer, finish } = setUp({}, { end });
      expect(clock.pending).toBe(1);
      finish();
      await answer;
      expect(clock.pending).toBe(0);
    }
  });

  it("sets no deadline for streams without their own", async () => {
    const { clock, seen, due } = setUp({}, { stream: true });
    clock.advance(1_000_000);
    expect(seen.signal?.aborted).toBe(false);
    expect(due()).toBeUndefined();
    expect(setUp({ "grpc-timeout": "2S" }, { stream: true }).due()).toBe(3000);
  });
});

describe("requestedTimeout", () => {
  it.each([
    [{ "grpc-timeout": "3S" }, 3000],
    [{ "grpc-timeout": "2M" }, 120_000],
    [{ "grpc-timeout": "1500u" }, 2],
    [{ "grpc-timeout": "1n" }, 1],
    [{ "grpc-timeout": "123456789S" }, undefined],
    [{ "grpc-timeout": "1x" }, undefined],
    [{ "connect-timeout-ms": "-1" }, undefined],
    [{}, undefined],
  ])("of %j is %s", (header, expected) => {
    expect(requestedTimeout(new Headers(header as Record<string, string>))).toBe(expected);
  });
});
