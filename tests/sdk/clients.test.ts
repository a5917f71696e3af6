import { SERVICES } from "@depute/client";
import { expect, test } from "vitest";
import { FORWARDED } from "../../gateway/src/services.ts";

test("the SDK has a client for each service that the gateway serves", () => {
  const served = Object.values(FORWARDED).flat();
  const names = (services: readonly { typeName: string }[]) =>
    services.map(({ typeName }) => typeName).sort();
  expect(names(Object.values(SERVICES))).toEqual(names(served));
});
