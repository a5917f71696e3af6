import { describe, expect, test } from "vitest";
import { NEKTE } from "./errors.ts";
import { GUIDES } from "./guide.ts";

describe("the guide", () => {
  test("names every code of the protocol", () => {
    for (const { code, message } of Object.values(NEKTE))
      expect(GUIDES.errors).toContain(`${code} ${message}`);
  });

  test("contains each of its parts completely", () => {
    for (const part of Object.values(GUIDES)) expect(GUIDES.all).toContain(part);
  });
});
