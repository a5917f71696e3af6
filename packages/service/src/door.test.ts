import { reasonName } from "@depute/core";
import { describe, expect, it, test } from "vitest";
import {
  assertBindable,
  assertDoorSettings,
  createDoor,
  type DoorOptions,
  isLoopback,
  REFUSE_PAGES,
} from "./door.ts";
import { SettingsError } from "./settings.ts";

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

const LOCAL = "http://127.0.0.1:8080";
const PUBLIC = "https://depute.example";
const ask = (headers: Record<string, string>, options: Partial<DoorOptions> = {}, httpVersion: 1 | 2 = 2) => {
  const door = createDoor({
    publicUrl: () => LOCAL,
    allowedHosts: () => [],
    allowedOrigins: [],
    isOpen: true,
    ...options,
  });
  const refusal = door({ headers, rawHeaders: Object.entries(headers).flat(), httpVersion });
  return refusal === undefined ? "in" : `${refusal.status} ${reasonName(refusal.error.reason)}`;
};
const FORBIDDEN = "403 CALLER_NOT_ALLOWED";

describe("a page with an origin", () => {
  it.each<[description: string, origin: string, publicUrl: string, isIn: boolean]>([
    ["the platform's own page", PUBLIC, `${PUBLIC}/`, true],
    ["a page of this machine", "http://localhost:8080", LOCAL, true],
    ["a page of this machine over IPv6", "http://[::1]:8080", "http://localhost:8080", true],
    ["a page below localhost", "http://agent.localhost:8080", LOCAL, true],
    ["another site", "https://elsewhere.example", PUBLIC, false],
    ["another port of this machine", "http://localhost:3000", LOCAL, false],
    ["a name that leads to this machine", "http://rebound.example:8080", LOCAL, false],
    ["a page without an address", "null", LOCAL, false],
    ["an empty origin", "", LOCAL, false],
    ["a name that begins like the public URL's", "https://depute.example.net", PUBLIC, false],
  ])("%s", (_, origin, publicUrl, isIn) => {
    const host = new URL(publicUrl).host;
    expect(ask({ host, origin }, { publicUrl: () => publicUrl })).toBe(isIn ? "in" : FORBIDDEN);
  });

  it("is admitted when the settings allow its origin", () => {
    const allowedOrigins = ["https://app.example"];
    expect(ask({ host: "127.0.0.1", origin: "https://app.example" }, { allowedOrigins })).toBe("in");
    expect(ask({ host: "127.0.0.1", origin: "http://app.example" }, { allowedOrigins })).toBe(FORBIDDEN);
  });

  it("of the request's own host and port is admitted", () => {
    const ownPage = (host: string, origin: string) => ask({ host, origin }, { publicUrl: () => PUBLIC });
    expect(ownPage("localhost:8080", "http://localhost:8080")).toBe("in");
    expect(ownPage("localhost:8080", "http://localhost:3000")).toBe(FORBIDDEN);
    expect(ownPage("rebound.example:8080", "http://rebound.example:8080")).toBe(FORBIDDEN);
  });

  it("needs an allowed host, too", () => {
    const origin = "http://127.0.0.1:8080";
    expect(ask({ host: "rebound.example:8080", origin })).toBe(FORBIDDEN);
    expect(ask({ host: "depute.internal:8080", origin }, { allowedHosts: () => ["depute.internal"] })).toBe(
      "in",
    );
  });
});

it.each([
  ["its own page", "same-origin", "in"],
  ["an address that the user entered", "none", "in"],
  ["another port or name of the site", "same-site", FORBIDDEN],
  ["another site", "cross-site", FORBIDDEN],
])("a browser without an origin, for %s", (_, site, answer) => {
  expect(ask({ host: "localhost:8080", "sec-fetch-site": site }, {}, 1)).toBe(answer);
  expect(ask({ host: "rebound.example", "sec-fetch-site": site }, { isOpen: false }, 1)).toBe(FORBIDDEN);
});

it.each([
  ["127.0.0.1:8080", true],
  ["127.9.9.9", true],
  ["localhost", true],
  ["LOCALHOST:1", true],
  ["localhost.", true],
  ["agent.localhost:8080", true],
  ["[::1]:8080", true],
  ["depute.example", true],
  ["agent.virtual.example:8080", true],
  ["virtual.example", false],
  ["depute.example.net", false],
  ["rebound.example:8080", false],
  ["10.0.0.1", false],
  ["", false],
  ["a b", false],
  ["127.0.0.1.rebound.example", false],
  ["localhost@rebound.example", false],
  ["0.0.0.0:8080", false],
])("on an open loopback the host %j over HTTP/1.1", (host, isIn) => {
  const options = { publicUrl: () => PUBLIC, allowedHosts: () => ["*.Virtual.example"] };
  expect(ask({ host }, options, 1)).toBe(isIn ? "in" : FORBIDDEN);
  // Requests over HTTP/2 may name any host, because browsers use HTTP/2 only with TLS. A server that requires
  // credentials (isOpen: false) also admits any host, because a page of another site does not have the credentials.
  expect(ask({ ":authority": host }, options, 2)).toBe("in");
  expect(ask({ host }, { ...options, isOpen: false }, 1)).toBe("in");
});

it.each(["ipv4:127.0.0.1:1,127.0.0.1:2", "team%2Fsvc", "unix:/run/depute", "%zz", "a,b"])(
  "a client other than a browser may send the authority %j",
  (authority) => expect(ask({ ":authority": authority })).toBe("in"),
);

it.each(["authorization", "Authorization", "DPoP", "x-api-key"])(
  "a repeated header %s is refused",
  (name) => {
    const rawHeaders = ["host", "localhost", name, "DPoP a", "x-other", "1", name.toLowerCase(), "DPoP b"];
    const head = { headers: { host: "localhost" }, httpVersion: 1 as const };
    expect(REFUSE_PAGES({ ...head, rawHeaders })?.status).toBe(401);
    expect(REFUSE_PAGES({ ...head, rawHeaders: rawHeaders.slice(0, 6) })).toBeUndefined();
  },
);

describe("settings", () => {
  test.each(["depute.internal", "*.Example.org", "10.0.0.1", "[fd00::1]"])("%s is a host", (host) => {
    expect(() => assertDoorSettings([host], [])).not.toThrow();
  });

  test.each(["", "*", "*.", "http://depute.internal", "depute.internal:8080", "a/b", "a b"])(
    "%j is not a host",
    (host) => expect(() => assertDoorSettings([host], [])).toThrow(SettingsError),
  );

  test.each(["https://app.example", "http://localhost:3000"])("%s is an origin", (origin) => {
    expect(() => assertDoorSettings([], [origin])).not.toThrow();
  });

  test.each([
    "",
    "null",
    "*",
    "app.example",
    "https://app.example/",
    "https://app.example/page",
    "file:///a",
  ])("%j is not an origin", (origin) =>
    expect(() => assertDoorSettings([], [origin])).toThrow(SettingsError),
  );
});
