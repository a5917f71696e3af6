import { expect, test } from "vitest";
import { readEndpoint } from "./endpoint.ts";

test.each([
  [
    "http://a.example/nekte/x",
    {
      protocol: "http",
      url: "http://a.example/nekte/x",
      authority: "a.example",
      isSecure: false,
      agentId: "",
    },
  ],
  [
    "https://a.example:8443",
    {
      protocol: "http",
      url: "https://a.example:8443",
      authority: "a.example:8443",
      isSecure: true,
      agentId: "",
    },
  ],
  [
    "grpc://a.example:50051",
    {
      protocol: "grpc",
      url: "http://a.example:50051",
      authority: "a.example:50051",
      isSecure: false,
      agentId: "",
    },
  ],
  [
    "GRPC://A.example/worker",
    {
      protocol: "grpc",
      url: "http://a.example:80",
      authority: "a.example:80",
      isSecure: false,
      agentId: "worker",
    },
  ],
  [
    "grpcs://[::1]/a%3Ab",
    { protocol: "grpc", url: "https://[::1]:443", authority: "[::1]:443", isSecure: true, agentId: "a:b" },
  ],
])("%s", (address, endpoint) => {
  expect(readEndpoint(address)).toEqual(endpoint);
});

test.each(["", "nowhere", "ftp://a.example", "mailto:a@b", "grpc:", "grpc://a.example/%zz", "grpc://a b"])(
  "%j is not an endpoint",
  (address) => {
    expect(readEndpoint(address)).toBeUndefined();
  },
);
