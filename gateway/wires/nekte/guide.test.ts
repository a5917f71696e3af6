import { describe, expect, test } from "vitest";
import { NEKTE } from "./errors.ts";
import { GUIDES } from "./guide.ts";

describe("the guide", () => {
  test("names every code of the family", () => {
    for (const { code, message } of Object.values(NEKTE))
      expect(GUIDES.errors).toContain(`${code} ${message}`);
  });

  test("holds each of its parts whole", () => {
    for (const part of Object.values(GUIDES)) expect(GUIDES.all).toContain(part);
  });
});
