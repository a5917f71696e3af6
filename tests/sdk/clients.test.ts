import { SERVICES } from "@depute/client";
import { gateway } from "@depute/gateway";
import { expect, test } from "vitest";

test("the SDK has a client for each service that the gateway serves", () => {
  const served = gateway.descriptors.filter(({ typeName }) => typeName.startsWith("depute."));
  const names = (services: readonly { typeName: string }[]) =>
    services.map(({ typeName }) => typeName).sort();
  expect(names(Object.values(SERVICES))).toEqual(names(served));
});
