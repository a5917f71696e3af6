import { describe, expect, test } from "vitest";
import { bareAddress, clientAddress, forwardedAddresses } from "./forwarded.ts";

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["192.0.2.1:4711", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["2001:db8::1", "2001:db8::1"],
  ["[2001:db8::1]:4711", "2001:db8::1"],
  ["unknown", ""],
  ["_hidden", ""],
  ["192.0.2.256", ""],
  ["192.0.2.1 evil", ""],
  ["", ""],
])("the address in %j is %j", (text, address) => {
  expect(bareAddress(text)).toBe(address);
});

test("X-Forwarded-For names the client first and the nearest proxy last", () => {
  expect(forwardedAddresses("x-forwarded-for", "192.0.2.1, 10.0.0.2:80 ,[2001:db8::1]")).toEqual([
    "2001:db8::1",
    "10.0.0.2",
    "192.0.2.1",
  ]);
});

test("Forwarded names addresses by the parameter `for`, also quoted and in any case", () => {
  const value = 'for=192.0.2.1;proto=http, For="[2001:db8::1]:80";by=10.0.0.1, proto=https, for=unknown';
  expect(forwardedAddresses("forwarded", value)).toEqual(["", "", "2001:db8::1", "192.0.2.1"]);
});

test("a header of any length gives a bounded number of addresses", () => {
  expect(forwardedAddresses("x-forwarded-for", "10.0.0.1,".repeat(10_000))).toHaveLength(32);
});

describe("the client's address", () => {
  const isTrusted = (address: string) => address.startsWith("10.");
  test.each<[string, string, string[], string]>([
    [
      "without a trusted proxy it is the peer's, whatever the header says",
      "192.0.2.9",
      ["192.0.2.1"],
      "192.0.2.9",
    ],
    ["behind a trusted proxy it is the address that the proxy names", "10.0.0.1", ["192.0.2.1"], "192.0.2.1"],
    [
      "behind two trusted proxies it is the address that the farther one names",
      "10.0.0.1",
      ["10.0.0.2", "192.0.2.1"],
      "192.0.2.1",
    ],
    [
      "an address that a client adds to the header is ignored",
      "10.0.0.1",
      ["192.0.2.1", "10.9.9.9"],
      "192.0.2.1",
    ],
    ["behind a trusted proxy without a header it is the proxy's", "10.0.0.1", [], "10.0.0.1"],
    ["behind a trusted proxy that hides it, it is the proxy's", "10.0.0.1", ["", "192.0.2.1"], "10.0.0.1"],
    ["with trusted proxies alone it is the farthest one's", "10.0.0.1", ["10.0.0.2"], "10.0.0.2"],
  ])("%s", (_, peer, hops, client) => {
    expect(clientAddress(peer, hops, isTrusted)).toBe(client);
  });
});
