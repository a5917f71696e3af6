import { createContextValues } from "@connectrpc/connect";
import { ManualClock } from "@depute/core";
import { describe, expect, it } from "vitest";
import { forwardOptions, forwardWireHeaders, optionsForOwner, ownOptions } from "./call-headers.ts";
import { deadlineKey, requestIdKey } from "./call-values.ts";
import { type Caller, callerKey } from "./caller.ts";
import { HOP } from "./hop-headers.ts";

const caller: Caller = { kind: "bound", principal: "", htm: "POST", htu: "http://public/x" };
const clock = new ManualClock(10_000);

function context(deadline?: number) {
  return {
    requestHeader: new Headers({
      authorization: "DPoP tok",
      dpop: "prf",
      "x-api-key": "k",
      traceparent: "00-1",
      tracestate: "a=b",
      cookie: "c",
      "x-forwarded-for": "f",
      [HOP.internal]: "between-us",
      [HOP.origin]: "service",
      [HOP.htm]: "FORGED",
      [HOP.htu]: "http://forged",
    }),
    values: createContextValues().set(callerKey, caller).set(requestIdKey, "r-1").set(deadlineKey, deadline),
    signal: new AbortController().signal,
  };
}

const entries = (headers: unknown) => Object.fromEntries(headers as Headers);

describe("forwardOptions", () => {
  it("forwards the caller's authenticated headers, and no others", () => {
    expect(entries(forwardOptions(context(), clock).headers)).toEqual({
      authorization: "DPoP tok",
      dpop: "prf",
      "x-api-key": "k",
      traceparent: "00-1",
      tracestate: "a=b",
      "depute-request-id": "r-1",
      "depute-wire": "connect",
      [HOP.htm]: "POST",
      [HOP.htu]: "http://public/x",
    });
  });

  it.each([
    [undefined, undefined],
    [12_500, 2500],
    [9_000, 1],
  ])("forwards the remaining time: due at %s, %s ms", (deadline, timeoutMs) => {
    const options = forwardOptions(context(deadline), clock);
    expect(options.timeoutMs).toBe(timeoutMs);
    expect(options.signal).toBeDefined();
  });
});

describe("ownOptions", () => {
  it("drops the caller's credentials", () => {
    expect(entries(ownOptions(context(), clock).headers)).toEqual({
      [HOP.origin]: "service",
      "depute-request-id": "r-1",
      "depute-wire": "connect",
    });
  });

  const credential: Caller = { ...caller, kind: "credential", principal: "ci", organization: "söhne" };

  it("names the caller's organization", () => {
    const call = context();
    call.values.set(callerKey, credential);
    expect(entries(ownOptions(call, clock).headers)[HOP.organization]).toBe("s%C3%B6hne");
  });

  it.each([
    ["the owner of the record that it works on", "acme", "acme"],
    ["no organization for a record without owner", "", undefined],
  ])("names %s in place of the caller's", (_, organization, header) => {
    const call = context();
    call.values.set(callerKey, credential);
    const { headers } = optionsForOwner(ownOptions(call, clock), { organization });
    expect(entries(headers)).toMatchObject({ [HOP.origin]: "service", "depute-request-id": "r-1" });
    expect(entries(headers)[HOP.organization]).toBe(header);
  });
});

describe("forwardWireHeaders", () => {
  it("states the wire's address, whatever address the client states", () => {
    const headers = forwardWireHeaders(
      context().requestHeader,
      { htm: "GET", htu: "http://public/nekte" },
      "r-2",
    );
    expect(entries(headers)).toMatchObject({ [HOP.htm]: "GET", [HOP.htu]: "http://public/nekte" });
    expect(headers.get("depute-request-id")).toBe("r-2");
    expect(headers.has(HOP.origin)).toBe(false);
    expect(headers.has(HOP.internal)).toBe(false);
  });
});
