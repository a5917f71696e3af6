import type { DeputeError } from "@depute/core";
import { describe, expect, it } from "vitest";
import { checkEndpoints } from "./endpoints.ts";

const ORIGINS = ["https://agents.example", "http://localhost:8080", "grpcs://agents.example"];

describe("checkEndpoints", () => {
  it.each<[string, string | undefined, boolean]>([
    ["none", undefined, true],
    ["an allowed origin", "https://agents.example/nekte?x=1", true],
    ["an allowed origin in another case", "HTTPS://AGENTS.example:443/", true],
    ["one with a port", "http://localhost:8080/", true],
    ["gRPC over TLS", "grpcs://AGENTS.example:443/worker", true],
    ["gRPC in the clear", "grpc://agents.example:443", false],
    ["gRPC at another port", "grpcs://agents.example:8443", false],
    ["gRPC with a name before the host", "grpcs://evil@agents.example", false],
    ["another scheme", "http://agents.example/", false],
    ["another port", "http://localhost:8081/", false],
    ["a host that begins like it", "https://agents.example.evil/", false],
    ["a host behind a name", "https://agents.example@evil/", false],
    ["a name before the host", "https://evil@agents.example/", false],
    ["no host", "mailto:agents@agents.example", false],
    ["the metadata of a cloud", "http://169.254.169.254/", false],
    ["no URL", "agents.example", false],
  ])("%s", (_, url, allowed) => {
    const check = () => checkEndpoints([{ field: "f", url }], ORIGINS);
    if (allowed) check();
    else expect(check).toThrow("f: has an origin that the platform does not allow");
  });

  it("allows every origin without configuration", () => {
    expect(() => checkEndpoints([{ field: "f", url: "http://anywhere/" }], [])).not.toThrow();
  });

  it("reports every refused address", () => {
    const endpoints = ["a", "b"].map((field) => ({ field, url: "http://evil/" }));
    try {
      checkEndpoints(endpoints, ORIGINS);
      expect.unreachable();
    } catch (error) {
      expect((error as DeputeError).violations.map(({ field }) => field)).toEqual(["a", "b"]);
    }
  });
});
