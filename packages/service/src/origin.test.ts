import { expect, it } from "vitest";
import { isOwnOrigin } from "./origin.ts";

it.each<[string, string | undefined, string, boolean]>([
  ["no page", undefined, "https://depute.example", true],
  ["the platform's own page", "https://depute.example", "https://depute.example/", true],
  ["a page of this machine", "http://localhost:8080", "http://127.0.0.1:8080", true],
  ["a page of this machine over IPv6", "http://[::1]:8080", "http://localhost:8080", true],
  ["another site", "https://elsewhere.example", "https://depute.example", false],
  ["another port of this machine", "http://localhost:3000", "http://127.0.0.1:8080", false],
  ["a name that leads to this machine", "http://rebound.example:8080", "http://127.0.0.1:8080", false],
  ["a page without an address", "null", "http://127.0.0.1:8080", false],
  ["what is no origin", "", "http://127.0.0.1:8080", false],
  ["a name that begins like it", "https://depute.example.net", "https://depute.example", false],
])("%s", (_, origin, publicUrl, isOwn) => expect(isOwnOrigin(origin, publicUrl)).toBe(isOwn));
