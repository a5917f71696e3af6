import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";

interface Container {
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
}

const file = readFileSync(new URL("../../docker-compose.yml", import.meta.url), "utf8");
const { services, volumes } = parse(file, { merge: true }) as {
  services: Readonly<Record<string, Container>>;
  volumes: Readonly<Record<string, unknown>>;
};
const containersOf = (process: string) =>
  Object.entries(services).filter(([, { command }]) => command?.[0] === process);

test.each(["registry", "tasks", "tokens", "verifier", "gateway"])("two containers run the %s", (process) => {
  expect(containersOf(process)).toHaveLength(2);
});

test.each([
  ["registry", 8081],
  ["tasks", 8082],
  ["tokens", 8083],
  ["verifier", 8084],
])("every container calls both replicas of the %s", (process, port) => {
  const addresses = containersOf(process).map(([name]) => `http://${name}:${port}`);
  const callers = Object.values(services).filter(({ environment }) => environment?.DEPUTE_REPLICATED);
  expect(callers).toHaveLength(10);
  for (const { environment } of callers)
    expect(environment?.[`DEPUTE_${process.toUpperCase()}_URL`]?.split(",")).toEqual(addresses);
});

test("no two containers share a volume or a port of the host", () => {
  const mounts = Object.values(services).flatMap(({ volumes = [] }) =>
    volumes.map((each) => each.split(":")[0]),
  );
  expect(mounts.toSorted()).toEqual(Object.keys(volumes).toSorted());
  const ports = Object.values(services).flatMap(({ ports = [] }) => ports.map((each) => each.split(":")[0]));
  expect(ports).toEqual(["8080", "8090"]);
});
