import { describe, expect, test } from "vitest";
import { type A2aInterface, a2aInterfaceOf, MAX_A2A_INTERFACES } from "./a2a-interface.ts";

const entry = (url: string, protocolBinding = "JSONRPC", protocolVersion = "1.0", tenant = "") => ({
  url,
  protocolBinding,
  protocolVersion,
  tenant,
});

describe("the interface of a card for calls", () => {
  test.each<[string, ReturnType<typeof entry>[], A2aInterface | undefined]>([
    ["no interface", [], undefined],
    [
      "the first of two",
      [entry("https://a.example/rpc"), entry("https://b.example/v1", "HTTP+JSON")],
      { binding: "JSONRPC", url: "https://a.example/rpc", tenant: "" },
    ],
    [
      "the first of a known binding",
      [entry("https://a.example", "SOAP"), entry("https://b.example/v1", "HTTP+JSON", "1.0.1", "t")],
      { binding: "HTTP+JSON", url: "https://b.example/v1", tenant: "t" },
    ],
    ["the first of version 1", [entry("https://a.example", "JSONRPC", "0.3.0")], undefined],
    ["a version 10", [entry("https://a.example", "JSONRPC", "10.0")], undefined],
    ["no URL", [entry("a.example")], undefined],
    ["another scheme", [entry("ftp://a.example")], undefined],
    ["a URL with credentials", [entry("https://u:p@a.example")], undefined],
    ["a URL that is too long", [entry(`https://a.example/${"x".repeat(1024)}`)], undefined],
    [
      "an entry beyond the limit",
      [
        ...Array.from({ length: MAX_A2A_INTERFACES }, () => entry("https://a.example", "SOAP")),
        entry("https://b.example"),
      ],
      undefined,
    ],
  ])("%s", (_, interfaces, expected) => {
    expect(a2aInterfaceOf(interfaces)).toEqual(expected);
  });

  test.each([
    ["a.example:443", "grpcs://a.example:443"],
    ["a.example:80", "grpcs://a.example:80"],
    ["127.0.0.1:8080", "grpc://127.0.0.1:8080"],
    ["localhost:80", "grpc://localhost:80"],
    ["[::1]:8080", "grpc://[::1]:8080"],
    ["127.0.0.1.example:1", "grpcs://127.0.0.1.example:1"],
    ["http://a.example:8080", "grpc://a.example:8080"],
    ["https://a.example/", "grpcs://a.example:443"],
    ["grpc://a.example", "grpc://a.example:80"],
    ["grpcs://127.0.0.1:1", "grpcs://127.0.0.1:1"],
    ["a.example", undefined],
    ["a.example:443/path", undefined],
    ["user@a.example:443", undefined],
    ["unix:/tmp/socket", undefined],
    ["", undefined],
  ])("of gRPC at %s is %s", (url, expected) => {
    expect(a2aInterfaceOf([entry(url, "GRPC")])?.url).toBe(expected);
  });
});
