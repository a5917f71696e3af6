import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";

interface Container {
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly image?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly mem_limit?: string;
  readonly pids_limit?: number;
  readonly cpus?: number;
  readonly healthcheck?: { readonly test: readonly string[] };
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

test.each(Object.keys(services))("%s has only the permissions that it needs, and a health check", (name) => {
  const container = services[name] as Container;
  expect(container).toMatchObject({
    read_only: true,
    cap_drop: ["ALL"],
    security_opt: ["no-new-privileges:true"],
    pids_limit: expect.any(Number),
    mem_limit: expect.any(String),
    cpus: expect.any(Number),
  });
  expect(container.healthcheck?.test.length).toBeGreaterThan(1);
});

test("each health check uses the port of its process", () => {
  const PORTS = { registry: 8081, tasks: 8082, tokens: 8083, verifier: 8084, gateway: 8080 };
  for (const [process, port] of Object.entries(PORTS))
    for (const [, { healthcheck }] of containersOf(process))
      expect(healthcheck?.test.join(" ")).toContain(`http://127.0.0.1:${port}/health`);
});

test("the versions of all images are pinned", () => {
  const dockerfile = readFileSync(new URL("../../Dockerfile", import.meta.url), "utf8");
  const bases = [...dockerfile.matchAll(/^ARG NODE_IMAGE=(\S+)$/gm)].map(([, image = ""]) => image);
  const others = Object.values(services).flatMap(({ image = "" }) => /:-(.+)\}$/.exec(image)?.[1] ?? []);
  const pinned = [...bases, ...others.filter((image) => image !== "depute")];
  expect(pinned.length).toBe(3);
  for (const image of pinned) expect(image).toMatch(/:\d+\.\d+(\.\d+)?-\w+/);
});

test("the image runs compiled code as a user without privileges, with the Node.js of its base", () => {
  const dockerfile = readFileSync(new URL("../../Dockerfile", import.meta.url), "utf8");
  const last = dockerfile.slice(dockerfile.lastIndexOf("FROM "));
  expect(last).toContain("\nUSER node\n");
  expect(last).toContain("\nENV UV_THREADPOOL_SIZE=24\n");
  expect(last).toMatch(/ENTRYPOINT \["node", .*"app\/src\/main\.js", "serve"\]/);
  // Only the packages that the merged code imports, so no second Node.js and no tools of development.
  expect([...last.matchAll(/^COPY --from=build (\S+) /gm)].map(([, path]) => path)).toEqual([
    "/outside/node_modules",
    "/depute/cli/dist",
  ]);
  expect(dockerfile).toContain("RUN node tools/copy-dependencies.ts cli/dist/package.json /outside\n");
});
