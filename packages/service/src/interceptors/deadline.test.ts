import { createContextValues } from "@connectrpc/connect";
import { DeputeError, ErrorReason, ManualClock } from "@depute/core";
import { describe, expect, it } from "vitest";
import { CallEnd } from "../call-end.ts";
import { callEndKey, deadlineKey } from "../call-values.ts";
import { EchoService } from "../testing/echo.ts";
import { deadlineInterceptor, requestedTimeout } from "./deadline.ts";
import type { Next } from "./outcome.ts";

function setUp(
  header: Record<string, string>,
  { stream = false, end }: { stream?: boolean; end?: CallEnd | undefined } = {},
) {
  const clock = new ManualClock(1000);
  const seen: { signal?: AbortSignal } = {};
  let finish: () => void = () => {};
  const next = ((request: { signal: AbortSignal }) => {
    seen.signal = request.signal;
    return new Promise((resolve) => {
      finish = () => resolve({ stream });
    });
  }) as unknown as Next;
  const contextValues = createContextValues().set(callEndKey, end);
  const interceptor = deadlineInterceptor({ defaultMs: 100, maxMs: 500, clock, timers: clock });
  const request = {
    stream,
    method: EchoService.method.unary,
    header: new Headers(header),
    contextValues,
    signal: end?.signal ?? new AbortController().signal,
  };
  const answer = interceptor(next)(request as never);
  answer.catch(() => {});
  return { clock, seen, answer, finish: () => finish(), due: () => contextValues.get(deadlineKey) };
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

  it("lets go of its timer when the call is answered", async () => {
    for (const end of [undefined, new CallEnd()]) {
      const { clock, answer, finish } = setUp({}, { end });
      expect(clock.pending).toBe(1);
      finish();
      await answer;
      expect(clock.pending).toBe(0);
    }
  });

  it("leaves streams alone", async () => {
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
