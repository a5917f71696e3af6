import { describe, expect, it } from "vitest";
import { assertBindable, isLoopback } from "./loopback.ts";

describe("isLoopback", () => {
  it.each(["127.0.0.1", "127.8.9.10", "::1", "localhost"])("%s", (host) => {
    expect(isLoopback(host)).toBe(true);
    expect(() => assertBindable(host, "open")).not.toThrow();
  });

  it.each([
    "0.0.0.0",
    "::",
    "10.0.0.1",
    "fe80::1",
    "localhost.example.org",
    "127.0.0.1.example.org",
    "127.1",
    "",
  ])("not %j", (host) => {
    expect(isLoopback(host)).toBe(false);
    expect(() => assertBindable(host, "open")).toThrow("DEPUTE_HOST");
    expect(() => assertBindable(host, "required")).not.toThrow();
  });
});
