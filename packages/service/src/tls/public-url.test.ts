import { expect, it } from "vitest";
import { publicUrlWarning } from "./public-url.ts";

it.each([
  ["", "http://127.0.0.1:8080", undefined],
  ["", "https://127.0.0.1:8443", undefined],
  ["http://depute.example", "http://127.0.0.1:8080", undefined],
  ["https://depute.example", "https://10.0.0.1:8443", undefined],
  ["https://depute.example", "unix:/run/depute/gateway.sock", undefined],
  ["https://depute.example", "http://10.0.0.1:8080", /behind a proxy that terminates TLS/],
  ["http://depute.example", "https://10.0.0.1:8443", /write https/],
])("the public URL %j with a listener at %s", (publicUrl, listenerUrl, warning) => {
  const text = publicUrlWarning(publicUrl, listenerUrl);
  if (warning === undefined) expect(text).toBeUndefined();
  else expect(text).toMatch(warning);
});
