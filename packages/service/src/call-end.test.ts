import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { CallEnd } from "./call-end.ts";

const never = new Promise<string>(() => {});
const late = new ConnectError("too late", Code.DeadlineExceeded);

describe("the end of a call", () => {
  it("is its answer, when that comes first", async () => {
    const end = new CallEnd();
    expect(await end.race(Promise.resolve("answer"))).toBe("answer");
    end.settle();
    end.abort(late);
    end.leave();
    expect(end.signal.aborted).toBe(false);
  });

  it("is what the handler threw, when that comes first", async () => {
    await expect(new CallEnd().race(Promise.reject(late))).rejects.toBe(late);
  });

  it("is its deadline, also for a handler that does not listen", async () => {
    const end = new CallEnd();
    const race = end.race(never);
    end.abort(late);
    end.leave();
    await expect(race).rejects.toBe(late);
    expect(end.signal.reason).toBe(late);
  });

  it("is its caller's leaving", async () => {
    const end = new CallEnd();
    end.leave();
    end.abort(late);
    await expect(end.race(never)).rejects.toMatchObject({ code: Code.Canceled });
    expect(end.signal.aborted).toBe(true);
  });
});
