import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { createContext, Script } from "node:vm";
import { publint } from "publint";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { onDemand } from "../../tools/on-demand.ts";
import { startPlatform } from "../gateway/platform.ts";
import {
  buildAndPack,
  installed,
  MAX_MS,
  type Packed,
  pack,
  publishedFolders,
  run,
  write,
} from "./published.ts";

const NAMES = ["@depute/client", "@depute/contracts", "@depute/core", "@depute/dct", "@depute/wire"];

const tarballs = mkdtempSync(join(tmpdir(), "depute-packed-"));
let packed: Packed[] = [];
let project = "";
beforeAll(() => {
  packed = buildAndPack(tarballs);
  project = installed(packed);
}, MAX_MS);
afterAll(() => {
  for (const folder of [tarballs, project]) if (folder !== "") rmSync(folder, { recursive: true });
});

const manifestOf = (folder: string) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
const errorsOf = (out: string) => out.split("\n").filter((line) => line !== "");

/** Type-checks programs of the project and compiles them to JavaScript. */
function compile(...programs: string[]): void {
  const flags = ["--module", "nodenext", "--target", "es2022", "--strict", "--types", "node"];
  const types = ["--typeRoots", join(process.cwd(), "node_modules/@types")];
  expect(errorsOf(run("tsc", [...flags, ...types, ...programs], project))).toEqual([]);
}

test("the published packages depend on published packages alone", () => {
  expect(packed.map(({ name }) => name)).toEqual(NAMES);
  for (const { folder } of packed) {
    const { dependencies, private: isPrivate } = manifestOf(folder);
    const ownPackages = Object.keys(dependencies).filter((name) => name.startsWith("@depute/"));
    expect(NAMES).toEqual(expect.arrayContaining(ownPackages));
    expect(isPrivate).toBeUndefined();
  }
});

test.each(publishedFolders())(
  "%s contains its code, its readme and its licence, and nothing else",
  (workspace) => {
    const { files = [] } = packed.find(({ folder }) => folder.startsWith(`${workspace}/`)) ?? {};
    const others = files.filter((file) => !/^(src|gen)\/.*\.(js|d\.ts)$|^bundle\//.test(file));
    expect(others.sort()).toEqual(["LICENSE", "README.md", "package.json"]);
    expect(files.filter((file) => /testing\/|\.test\.|fixtures/.test(file))).toEqual([]);
    expect(readFileSync(join(workspace, "dist/README.md"), "utf8")).not.toContain("](..");
  },
);

test.each(publishedFolders())(
  "publint and attw find no fault in %s",
  async (workspace) => {
    const pkgDir = join(workspace, "dist");
    expect((await publint({ pkgDir, strict: true })).messages).toEqual([]);
    const tarball = packed.find(({ folder }) => folder === pkgDir)?.tarball ?? "";
    run(join(onDemand("packages"), ".bin/attw"), [tarball, "--profile", "esm-only", "--no-color"]);
  },
  MAX_MS,
);

test("the contracts contain the bundle", () => {
  const bundle = join(project, "node_modules/@depute/contracts/bundle");
  const { version } = manifestOf("packages/contracts");
  for (const file of ["depute.binpb", `depute-protos-${version}.tgz`]) {
    expect(existsSync(join(bundle, file))).toBe(true);
  }
});

const PROGRAM = `
import { connect, reasonOf, startWorker, type Work } from "@depute/client";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { canonicalJson } from "@depute/core";
import { generateKeypair, portableEngine } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import { encode } from "@depute/wire";

const work: Work = async (input, { progress }) => {
  await progress(1, 2);
  return { output: input };
};
const depute = connect("http://127.0.0.1:1", { maxOutageMs: 0 });
const refused = await depute.task("t").read().catch((error: unknown) => [reasonOf(error), String(error)]);
const principals = [portableEngine, nativeEngine].map((engine) => generateKeypair(engine).principal.id.length);
const functions = [work, startWorker, encode].map((each) => typeof each);
console.log(canonicalJson({ service: TaskService.typeName, principals, functions, refused: String(refused) }));
`;

test(
  "a program in an empty project passes the type checker, and runs",
  () => {
    write(join(project, "program.ts"), PROGRAM);
    compile("program.ts");
    const printed = JSON.parse(run(process.execPath, ["program.js"], project));
    expect(printed).toMatchObject({
      service: "depute.tasks.v1.TaskService",
      principals: [43, 43],
      functions: ["function", "function", "function"],
      refused: expect.stringContaining("unavailable"),
    });
  },
  MAX_MS,
);

test(
  "the quickstart delegates from an empty project",
  async () => {
    const platform = await startPlatform();
    try {
      const programs = ["worker.ts", "delegator.ts"];
      for (const file of programs) cpSync(join("examples/quickstart", file), join(project, file));
      compile(...programs);
      const stdio: ["ignore", "pipe", "inherit"] = ["ignore", "pipe", "inherit"];
      const worker = spawn(process.execPath, ["worker.js", platform.url], { cwd: project, stdio });
      const [firstLine] = await once(worker.stdout, "data");
      const delegator = spawn(process.execPath, ["delegator.js", String(firstLine).trim(), platform.url], {
        cwd: project,
        stdio,
      });
      const lines = (await text(delegator.stdout)).trim().split("\n");
      worker.kill("SIGTERM");
      expect(await once(worker, "close")).toEqual([0, null]);
      expect(lines).toEqual(expect.arrayContaining(["1 of 2", "2 of 2", "completed"]));
      expect(lines.slice(-2)).toEqual(['{"counts":[4,4],"total":8}', "refused: TOKEN_DENIED"]);
    } finally {
      await platform.stop();
    }
  },
  MAX_MS,
);

test("the example's programs have about 40 lines", () => {
  for (const file of ["worker.ts", "delegator.ts"]) {
    expect(readFileSync(join("examples/quickstart", file), "utf8").split("\n").length).toBeLessThanOrEqual(
      41,
    );
  }
});

const IN_BROWSER = `
import { checkProof, createProof, generateKeypair, portableEngine as engine } from "@depute/dct";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";

const keypair = generateKeypair(engine);
const call = { htm: "POST", htu: "https://example.com/" + TaskService.typeName };
const { ok } = checkProof(engine, createProof(engine, keypair, call), { ...call, now: Date.now() });
globalThis.isProven = ok;
`;

test(
  "a bundler creates a script for browsers that needs nothing of Node.js",
  async () => {
    write(join(project, "browser.js"), IN_BROWSER);
    const warnings: string[] = [];
    const bundle = await rolldown({
      input: join(project, "browser.js"),
      cwd: project,
      platform: "browser",
      onLog: (_, { message }) => warnings.push(message),
    });
    const { output } = await bundle.generate({ format: "iife" });
    await bundle.close();
    expect(warnings).toEqual([]);
    expect(output).toHaveLength(1);
    expect(output[0].imports).toEqual([]);
    const { crypto, TextEncoder, TextDecoder, URL, atob, btoa } = globalThis;
    const page = createContext({ crypto, TextEncoder, TextDecoder, URL, atob, btoa, Uint8Array });
    new Script(output[0].code).runInContext(page);
    expect(page.isProven).toBe(true);
  },
  MAX_MS,
);

describe("the package depute, in an empty project", () => {
  let home = "";
  /** The folder of a project that contains Node.js 22. */
  let node22 = "";
  let files: readonly string[] = [];
  beforeAll(() => {
    const platform = pack("cli", tarballs);
    files = platform.files;
    home = installed([platform]);
    node22 = mkdtempSync(join(tmpdir(), "depute-node22-"));
    write(join(node22, "package.json"), "{}");
    const name = `node-${process.platform}-${process.arch}`;
    run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", `${name}@22`], node22);
  }, MAX_MS);
  const children: ChildProcess[] = [];
  afterAll(() => {
    // After a failure, a process may still run.
    for (const child of children) child.kill("SIGKILL");
    for (const folder of [home, node22]) if (folder !== "") rmSync(folder, { recursive: true });
  });

  const BIN = "node_modules/depute/src/bin.js";
  const node = () => join(node22, "node_modules/.bin/node");
  const depute = (...words: string[]) => run(node(), [BIN, ...words], home);

  test("contains the platform, the console, the contracts' bundle and notices, and no tests or sources", () => {
    for (const file of [
      "src/bin.js",
      "gateway/console/index.html",
      "dist/depute.binpb",
      "services/verifier/src/checker/worker.js",
      "THIRD_PARTY_NOTICES.md",
    ]) {
      expect(files).toContain(file);
    }
    expect(files.filter((file) => /\/testing\/|fixtures|\.test\.|\.ts$/.test(file))).toEqual([]);
  });

  test("loads few files, and depends on what it cannot contain", () => {
    expect(files.filter((file) => /^src\/|^chunks\//.test(file)).length).toBeLessThan(300);
    expect(Object.keys(manifestOf("cli/dist").dependencies)).toEqual(["sodium-native"]);
    const notices = readFileSync("cli/dist/THIRD_PARTY_NOTICES.md", "utf8");
    for (const name of ["@bufbuild/protobuf", "ajv", "pino"]) expect(notices).toContain(`## ${name} `);
  });

  test("prints its version and its help on Node.js 22", () => {
    expect(run(node(), ["--version"])).toMatch(/^v22\./);
    const { version } = manifestOf("cli/dist");
    expect(depute("--version").trim()).toBe(`depute ${version}`);
    expect(depute("--help")).toContain("Runs the whole platform in one process");
  });

  test(
    "starts the platform from Node.js 22, serves its files, works for a client, and ends in order",
    async () => {
      const settings = { DEPUTE_DATA_DIR: join(home, "data"), DEPUTE_GATEWAY_PORT: "0" };
      const env = { ...process.env, ...settings, DEPUTE_LOG_LEVEL: "error" };
      const platform = spawn(node(), [BIN, "start"], {
        cwd: home,
        env,
        stdio: ["ignore", "pipe", "inherit"],
      });
      children.push(platform);
      const ended = once(platform, "close");
      let welcome = "";
      for await (const chunk of platform.stdout) {
        welcome += chunk;
        if (welcome.includes("Ctrl-C")) break;
      }
      const [url = ""] = /http:\/\/127\.0\.0\.1:\d+/.exec(welcome) ?? [];
      expect(welcome).toContain("npx depute start --help");
      for (const [path, type] of [
        ["/console/", "text/html"],
        ["/protos/depute.binpb", "application/x-protobuf"],
        ["/openapi.json", "application/json"],
        ["/.well-known/agent.json", "application/json"],
        ["/schemas/agenta.delegation.v0/offer.schema.json", "application/schema+json"],
      ] as const) {
        const answer = await fetch(new URL(path, url));
        expect([path, answer.status, answer.headers.get("content-type")]).toEqual([
          path,
          200,
          expect.stringContaining(type),
        ]);
      }
      const client = (...words: string[]) => depute(...words, "--server", url);
      const worker = spawn(
        node(),
        [BIN, "worker", "--agent", "echo", "--capability", "echo", "--server", url, "--", "cat"],
        {
          cwd: home,
          stdio: ["ignore", "inherit", "inherit"],
        },
      );
      children.push(worker);
      const workerEnded = once(worker, "close");
      const input = ["delegate", "--agent", "echo", "--input", '{"text":"hi"}', "--watch"];
      await expect.poll(() => client("agents", "list", "-o", "id"), { timeout: 20_000 }).toContain("echo");
      expect(JSON.parse(client(...input))).toEqual({ text: "hi" });
      worker.kill("SIGTERM");
      await workerEnded;
      platform.kill("SIGTERM");
      expect(await ended).toEqual([0, null]);
    },
    MAX_MS,
  );
});
