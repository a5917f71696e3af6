import { commonSettings, readSettings } from "@depute/service";
import { describe, expect, test } from "vitest";
import { planCluster } from "./plan.ts";

const ALL = { isReplicable: true };
const MODULES = { tokens: {}, verifier: {}, registry: ALL, tasks: {}, gateway: ALL };
const settingsOf = (...args: string[]) => readSettings(commonSettings, args, { name: "test" });

describe("a cluster without replicas", () => {
  const { processes, urls, single } = planCluster(settingsOf("--data-dir", "data"), 1, MODULES);

  test("has one process of each service, at the configured ports", () => {
    expect(processes.map(({ name, url }) => `${name} ${url}`)).toEqual([
      "tokens http://127.0.0.1:8083",
      "verifier http://127.0.0.1:8084",
      "registry http://127.0.0.1:8081",
      "tasks http://127.0.0.1:8082",
      "gateway http://127.0.0.1:8080",
    ]);
    expect(single).toEqual([]);
    expect(urls.tasksUrl).toEqual(["http://127.0.0.1:8082"]);
  });

  test("needs no shared database", () => {
    for (const { settings } of processes)
      expect(settings).toMatchObject({ replicated: false, dataDir: "data" });
  });
});

describe("a cluster of three replicas", () => {
  const { processes, urls, single } = planCluster(settingsOf("--data-dir", "data"), 3, MODULES);
  const of = (module: string) => processes.filter((each) => each.module === module);

  test("has three processes of each service that can have replicas, and one of each other", () => {
    expect(processes.map(({ name }) => name)).toEqual([
      "tokens",
      "verifier",
      ...["registry-1", "registry-2", "registry-3"],
      "tasks",
      ...["gateway-1", "gateway-2", "gateway-3"],
    ]);
    expect(single).toEqual(["tokens", "verifier", "tasks"]);
    expect(of("registry").map(({ settings }) => settings.replicated)).toEqual([true, true, true]);
    expect(of("tokens").map(({ settings }) => settings.replicated)).toEqual([false]);
  });

  test("gives each replica its own port and data folder", () => {
    expect(urls.registryUrl).toEqual([8081, 8091, 8101].map((port) => `http://127.0.0.1:${port}`));
    expect(of("registry").map(({ settings }) => settings.dataDir)).toEqual([
      "data",
      "data/replica-2",
      "data/replica-3",
    ]);
  });

  test("has one port that all gateways share, besides their own", () => {
    expect(of("gateway").map(({ url }) => url)).toEqual(
      [8090, 8100, 8110].map((port) => `http://127.0.0.1:${port}`),
    );
    for (const { settings } of of("gateway")) expect(settings.gatewaySharedPort).toBe(8080);
  });
});

test("a cluster with one port for two processes is refused", () => {
  const settings = settingsOf("--registry-port", "9000", "--tasks-port", "9010");
  expect(() => planCluster(settings, 2, { ...MODULES, tasks: ALL })).toThrow(
    "registry-2 and tasks-1 would both listen on http://127.0.0.1:9010; choose ports further apart",
  );
});
