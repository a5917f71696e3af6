import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { startBalancer } from "./balancer.ts";
import { IMAGES, makeBaseImages } from "./base-images.ts";
import { Engine } from "./engine.ts";

/**
 * `npm run test:containers`: builds the image, brings docker-compose.yml up, runs the demonstration with credentials, kills
 * each container in turn, and takes all down. It needs a Docker engine, or root and Debian's packages docker.io,
 * docker-compose and debootstrap.
 */

const ROOT = new URL("../..", import.meta.url).pathname;
const IMAGE = "depute-test/depute";
const PROJECT = "depute-test";
/** Maximum size of the image beside its base, in bytes. */
const MAX_BYTES = 120_000_000;
/** Milliseconds in which all containers must be healthy. */
const HEALTHY_MS = 180_000;
/** Milliseconds in which one demonstration must end. */
const DEMONSTRATION_MS = 90_000;
/** The ports of the gateways in docker-compose.yml, and the port of the load balancer before them. */
const GATEWAYS = [8080, 8090] as const;
const PUBLIC_PORT = 8088;
const SECRET = randomBytes(24).toString("base64url");

const folder = mkdtempSync(join(tmpdir(), "depute-containers-"));
const balancer = await startBalancer(PUBLIC_PORT, GATEWAYS);
const engine = await Engine.open(join(tmpdir(), "depute-docker"));
const env = {
  DEPUTE_IMAGE: IMAGE,
  POSTGRES_IMAGE: IMAGES.postgres,
  REDIS_IMAGE: IMAGES.redis,
  DEPUTE_INTERNAL_SECRET: randomBytes(24).toString("base64url"),
  DEPUTE_PUBLIC_URL: `http://localhost:${PUBLIC_PORT}`,
  POSTGRES_PASSWORD: randomBytes(12).toString("hex"),
};
const compose = (...args: string[]) =>
  engine.compose(
    ["-p", PROJECT, "-f", join(ROOT, "docker-compose.yml"), "--project-directory", folder, ...args],
    {
      env,
    },
  );

try {
  writeFileSync(
    join(folder, "credentials.json"),
    JSON.stringify([{ principal: "operator", sha256: createHash("sha256").update(SECRET).digest("hex") }]),
  );
  writeFileSync(join(folder, "master.key"), randomBytes(32).toString("base64url"));

  step("base images from Debian's packages");
  makeBaseImages(engine);

  step("the image");
  engine.run([
    "build",
    "--network",
    "host",
    "--build-arg",
    `NODE_IMAGE=${IMAGES.node}`,
    "--tag",
    IMAGE,
    ROOT,
  ]);
  assertImage();

  step("docker-compose up");
  compose("up", "--no-build", "--detach");
  await allHealthy();
  assertHardened();
  await demonstrate();

  for (const name of containers()) {
    step(`kill ${name}`);
    engine.run(["kill", "--signal", "KILL", name], { stdio: "ignore" });
    // Without its only database the platform refuses calls, so that one comes back first.
    const isDatabase = name.includes("postgres");
    if (!isDatabase) await demonstrate();
    // The engine restarts no container that a person killed.
    engine.run(["start", name], { stdio: "ignore" });
    await allHealthy();
    if (isDatabase) await demonstrate();
  }
  console.log("\ncontainers: passed");
} catch (error) {
  process.exitCode = 1;
  console.error(error);
  for (const name of containers()) engine.run(["logs", "--tail", "20", name]);
} finally {
  compose("down", "--volumes", "--timeout", "20");
  balancer.close();
  engine.close();
  rmSync(folder, { recursive: true, force: true });
}

function step(name: string): void {
  console.log(`\n== ${name}`);
}

function containers(): string[] {
  const names = engine.read([
    "ps",
    "--all",
    "--filter",
    `label=com.docker.compose.project=${PROJECT}`,
    "--format",
    "{{.Names}}",
  ]);
  return names
    .split("\n")
    .filter((name) => name !== "")
    .sort();
}

/** Checks the size of the image, that it has one Node.js, and that it has no sources and development files. */
function assertImage(): void {
  const sizeOf = (name: string) => Number(engine.read(["image", "inspect", "--format", "{{.Size}}", name]));
  const own = sizeOf(IMAGE) - sizeOf(IMAGES.node);
  console.log(`the image: ${Math.round(own / 1e6)} MB beside its base`);
  if (own > MAX_BYTES) throw new Error(`the image has ${own} bytes beside its base, more than ${MAX_BYTES}`);
  const inside = (command: string) =>
    engine.read(["run", "--rm", "--network", "none", "--entrypoint", "sh", IMAGE, "-c", command]);
  const nodes = inside("find / -xdev -name node -type f -perm -u+x 2>/dev/null || true").split("\n");
  if (nodes.length !== 1)
    throw new Error(`the image has ${nodes.length} files of Node.js: ${nodes.join(", ")}`);
  const sources = inside(
    "find /depute/app -name '*.ts' -not -name '*.d.ts' -o -name '*.test.js' | head -5; " +
      "find /depute/node_modules -maxdepth 2 -name typescript -o -maxdepth 2 -name vitest -o -maxdepth 2 -name vite",
  );
  if (sources !== "") throw new Error(`the image has files of development: ${sources}`);
  // The help loads every module that a service needs at its start.
  engine.run(["run", "--rm", "--network", "none", IMAGE, "gateway", "--help"], { stdio: "ignore" });
  const user = inside("id -u");
  if (user === "0") throw new Error("the image runs as root");
}

/** Checks what the running containers may do. */
function assertHardened(): void {
  for (const name of containers()) {
    const [{ HostConfig: host }] = JSON.parse(engine.read(["inspect", name]));
    const lacks = [
      ...(host.ReadonlyRootfs ? [] : ["a read-only root"]),
      ...(host.CapDrop?.includes("ALL") ? [] : ["dropped capabilities"]),
      ...(host.SecurityOpt?.includes("no-new-privileges:true") ? [] : ["no new privileges"]),
      ...(host.Memory > 0 && host.PidsLimit > 0 ? [] : ["limits of memory and processes"]),
    ];
    if (lacks.length > 0) throw new Error(`${name} lacks ${lacks.join(", ")}`);
  }
}

async function allHealthy(): Promise<void> {
  const began = performance.now();
  for (;;) {
    const states = containers().map((name) => {
      const format = "{{.State.Status}} {{if .State.Health}}{{.State.Health.Status}}{{end}}";
      return `${name}: ${engine.read(["inspect", "--format", format, name])}`;
    });
    const waiting = states.filter((state) => !state.endsWith("running healthy"));
    if (waiting.length === 0) break;
    if (performance.now() - began > HEALTHY_MS) throw new Error(`not healthy: ${waiting.join("; ")}`);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  console.log(`all healthy after ${Math.round((performance.now() - began) / 1000)} s`);
}

/** Delegates work with credentials, through the load balancer. */
async function demonstrate(): Promise<void> {
  const began = performance.now();
  const own = {
    ...process.env,
    DEPUTE_URL: env.DEPUTE_PUBLIC_URL,
    DEPUTE_SECRET: SECRET,
    DEPUTE_AGENT: `sentiment-${randomBytes(4).toString("hex")}`,
  };
  const pair = join(ROOT, "examples/sentiment/src/pair");
  const worker = spawn(process.execPath, [join(pair, "worker.ts")], {
    env: { ...own, DEPUTE_KEY: join(folder, `${own.DEPUTE_AGENT}.key`) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    await ready(worker);
    // The load balancer runs in this process, so the process must not block.
    const { stdout } = await promisify(execFile)(process.execPath, [join(pair, "delegator.ts"), "complete"], {
      env: { ...own, DEPUTE_KEY: join(folder, "delegator.key") },
      timeout: DEMONSTRATION_MS,
    });
    if (!stdout.includes("attestation valid"))
      throw new Error(`the demonstration ended otherwise: ${stdout}`);
  } finally {
    worker.kill();
  }
  console.log(`the demonstration took ${Math.round((performance.now() - began) / 1000)} s`);
}

/** Waits until a worker prints `ready`. */
async function ready({ stdout }: ChildProcess): Promise<void> {
  let text = "";
  for await (const chunk of stdout ?? []) {
    text += String(chunk);
    if (text.includes("ready")) return;
  }
  throw new Error(`the worker ended before it was ready: ${text}`);
}
