import { describe, expect, it } from "vitest";
import { isSameTarget, normaliseTarget } from "./target.ts";

const HERE = "https://depute.example/depute.tasks.v1.TaskService/GetTask";

describe("addresses that are equal by RFC 9449 4.3", () => {
  it.each([
    ["https://host", "https://host/"],
    ["https://host:443/a", "https://host/a"],
    ["http://host:80/a", "http://host/a"],
    ["HTTPS://HOST/a", "https://host/a"],
    ["https://host/a?query=1", "https://host/a"],
    ["https://host/a#fragment", "https://host/a"],
    ["https://host/a/./b/../c", "https://host/a/c"],
    ["https://host/%7euser", "https://host/~user"],
    ["https://host/%c3%a4", "https://host/%C3%A4"],
  ])("%s is %s", (one, other) => {
    expect(normaliseTarget(one)).toBe(other);
    expect(normaliseTarget(other)).toBe(other);
  });
});

describe("addresses that differ", () => {
  it.each([
    ["https://host/a/", "https://host/a"],
    ["http://host/a", "https://host/a"],
    ["https://host:8443/a", "https://host/a"],
    ["https://host/A", "https://host/a"],
    ["https://host/a%2Fb", "https://host/a/b"],
    ["https://host/%41%2e%2e", "https://host/A"],
    ["https://host.evil/a", "https://host/a"],
  ])("%s is not %s", (one, other) => {
    expect(normaliseTarget(one)).not.toBe(normaliseTarget(other));
  });
});

it.each(["", "host/a", "ftp://host/a", "https://user@host/a", "https://user:word@host/a", " https://host/a"])(
  "%j is not the address of a request",
  (text) => expect(normaliseTarget(text)).toBeUndefined(),
);

it.each(["https://host\\a", "https://ho\nst/a", "https://host:99999/a", "https://"])(
  "%j is refused where a lenient parser would repair it",
  (text) => expect(normaliseTarget(text)).toBeUndefined(),
);

describe("the target of a proof", () => {
  it.each([
    [HERE.replace("https://depute.example", "https://DEPUTE.example:443"), true],
    [`${HERE}?x=1`, true],
    ["https://elsewhere.example/depute.tasks.v1.TaskService/GetTask", false],
    [`${HERE}/`, false],
    ["", false],
    ["no address", false],
  ])("may be spelled %s", (claimed, isSame) => {
    expect(isSameTarget(claimed, HERE)).toBe(isSame);
  });

  it("is compared unchanged if it is not an http address, as for MCP over stdio", () => {
    expect(isSameTarget("urn:Tools", "urn:tools")).toBe(false);
  });
});
