import { expect, test } from "vitest";
import type { CommonSettings } from "./common-settings.ts";
import { assertReplicable } from "./host-rules.ts";
import type { ServiceModule } from "./module.ts";
import type { ServiceName } from "./names.ts";

const hosted = (name: ServiceName, isReplicable?: boolean) => ({
  module: { name, ...(isReplicable !== undefined && { isReplicable }) } as ServiceModule,
});
const settings = (more: Partial<CommonSettings>) =>
  ({ replicated: true, postgresUrl: "postgres:", masterKeyFile: "key", ...more }) as CommonSettings;

test("a service that keeps copies of its rows in memory has no replicas", () => {
  const modules = [hosted("registry", true), hosted("tasks"), hosted("tokens", false)];
  expect(() => assertReplicable(modules, settings({}))).toThrow(
    "only one process at a time may run tasks, tokens; run the other services in separate processes",
  );
  expect(() => assertReplicable(modules, settings({ replicated: false }))).not.toThrow();
});

test.each([{ postgresUrl: "" }, { masterKeyFile: "" }])("replicas with %j do not start", (missing) => {
  expect(() => assertReplicable([hosted("registry", true)], settings(missing))).toThrow(
    "set DEPUTE_POSTGRES_URL and DEPUTE_MASTER_KEY_FILE",
  );
  expect(() => assertReplicable([hosted("registry", true)], settings({}))).not.toThrow();
});
