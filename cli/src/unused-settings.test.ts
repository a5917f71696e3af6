import { defineSettings, SettingsError } from "@depute/service";
import { expect, test } from "vitest";
import { withoutUnused } from "./unused-settings.ts";

const TABLE = defineSettings({
  gatewayPort: { type: "int", default: 8080, help: "" },
  registryPort: { type: "int", default: 8081, help: "" },
});
const UNUSED = { registryPort: "has no effect here" };

test("an unused setting without a value is omitted", () => {
  expect(withoutUnused(TABLE, UNUSED, ["--gateway-port", "1"], {}, { DEPUTE_REGISTRY_PORT: "" })).toEqual({
    gatewayPort: TABLE.gatewayPort,
  });
});

test.each([
  [["--registry-port", "1"], {}, {}, "--registry-port: has no effect here"],
  [["--registry-port=1"], {}, {}, "--registry-port: has no effect here"],
  [[], {}, { DEPUTE_REGISTRY_PORT: "1" }, "DEPUTE_REGISTRY_PORT: has no effect here"],
  [[], { registryPort: { value: 1, place: "a.yaml:2" } }, {}, "a.yaml:2: registryPort: has no effect here"],
])("an unused setting in %j, %j or %j is refused", (args, file, env, message) => {
  expect(() => withoutUnused(TABLE, UNUSED, args, file, env)).toThrow(new SettingsError(message));
});
