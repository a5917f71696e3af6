import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";

/** A command, run in the root of the repository unless it names a folder. */
export interface Command {
  readonly argv: readonly [string, ...string[]];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** The programs of one language. examples/README.md describes each program. */
export interface Language {
  readonly name: string;
  /** Returns the tools that this machine lacks, each with the way to install it; empty if none. */
  missingTools(): string[];
  /** The commands that build the programs, in order. `scratch` is an empty folder. */
  build(scratch: string): Command[];
  worker(scratch: string): Command;
  delegator(scratch: string): Command;
  /** The language's own tests of the vectors; absent where another command runs them. */
  vectors?(scratch: string): Command;
  /**
   * The tag of the block in docs/clients.md with the language's program; absent together with `run`. `run` returns
   * the commands that run the block's code.
   */
  readonly documented?: string;
  run?(scratch: string, code: string): Command[];
}

/** Returns the programs that are not on the PATH, each with the way to install it. */
function missing(programs: Readonly<Record<string, string>>): string[] {
  return Object.entries(programs)
    .filter(([program]) => spawnSync("which", [program]).status !== 0)
    .map(([program, install]) => `${program} is not on the PATH; ${install}`);
}

/** Returns the command of a Node.js program. A compile cache in `scratch` makes later starts faster. */
const node = (file: string, scratch: string): Command => ({
  argv: [process.execPath, file],
  env: { NODE_COMPILE_CACHE: scratch },
});

const typescript: Language = {
  name: "typescript",
  missingTools: () => [],
  build: () => [],
  worker: (scratch) => node("examples/sentiment/src/pair/worker.ts", scratch),
  delegator: (scratch) => node("examples/sentiment/src/pair/delegator.ts", scratch),
  documented: "ts",
  run: (_, code) => [{ argv: [process.execPath, "--input-type=module-typescript", "--eval", code] }],
};

const python: Language = {
  name: "python",
  missingTools() {
    const check = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
    if (spawnSync("python3", ["-c", check]).status === 0) return [];
    return ["python3 3.10 or later with venv is not there; apt-get install python3-venv"];
  },
  build: (scratch) => [
    { argv: ["python3", "-m", "venv", scratch] },
    {
      argv: [join(scratch, "bin/python"), "-m", "pip", "install", "--quiet", "./sdk/python"],
      env: { PIP_DISABLE_PIP_VERSION_CHECK: "1" },
    },
  ],
  worker: (scratch) => ({ argv: [join(scratch, "bin/python"), "examples/python/worker.py"] }),
  delegator: (scratch) => ({ argv: [join(scratch, "bin/python"), "examples/python/delegator.py"] }),
  documented: "python",
  run: (scratch, code) => [{ argv: [join(scratch, "bin/python"), "-c", code] }],
};

const GO = "examples/go";

const go: Language = {
  name: "go",
  missingTools: () => missing({ go: "apt-get install golang-go, or see https://go.dev/doc/install" }),
  build: (scratch) => [
    // Installs the generator's plugins in the versions that go.mod states.
    { argv: ["go", "install", "tool"], cwd: GO, env: { GOBIN: scratch } },
    {
      argv: [process.execPath, "tools/generate-clients.ts", "go", join(GO, "gen")],
      env: { PATH: [scratch, process.env.PATH].join(delimiter) },
    },
    { argv: ["go", "build", "-o", scratch, "./worker", "./delegator"], cwd: GO },
  ],
  worker: (scratch) => ({ argv: [join(scratch, "worker")] }),
  delegator: (scratch) => ({ argv: [join(scratch, "delegator")] }),
  vectors: () => ({ argv: ["go", "test", "-count=1", "./depute"], cwd: GO }),
  documented: "go",
  run(scratch, code) {
    // Writes the program to `gen/`, a folder of the Go module that git ignores.
    const folder = join(GO, "gen/documented");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "main.go"), code);
    const program = join(scratch, "documented");
    return [
      { argv: ["go", "build", "-o", program, "./gen/documented"], cwd: GO },
      { argv: [program], cwd: scratch },
    ];
  },
};

const JAVA = "examples/java";

/** A program of examples/java. Java itself expands the folder of libraries. */
const javaProgram = (main: string): Command => ({
  argv: ["java", "-cp", `${JAVA}/target/classes:${JAVA}/target/lib/*`, `dev.depute.examples.${main}`],
});

const java: Language = {
  name: "java",
  missingTools: () =>
    missing({ javac: "apt-get install openjdk-17-jdk-headless", mvn: "apt-get install maven" }),
  build: () => [
    { argv: [process.execPath, "tools/bundle.ts", join(JAVA, "protos")] },
    { argv: ["mvn", "-q", "-B", "-f", join(JAVA, "pom.xml"), "package", "-DskipTests"] },
  ],
  worker: () => javaProgram("Worker"),
  delegator: () => javaProgram("Delegator"),
  vectors: () => ({ argv: ["mvn", "-q", "-B", "-f", join(JAVA, "pom.xml"), "test"] }),
  documented: "java",
  run(scratch, code) {
    // The class is in the example's package, because the example's classes are not public.
    const source = join(scratch, "FirstCall.java");
    writeFileSync(source, code);
    const classes = [scratch, resolve(JAVA, "target/classes"), resolve(JAVA, "target/lib/*")].join(delimiter);
    return [
      { argv: ["javac", "-cp", classes, "-d", scratch, source] },
      { argv: ["java", "-cp", classes, "dev.depute.examples.FirstCall"], cwd: scratch },
    ];
  },
};

const RUST = "examples/rust";
/** Further crates use the libraries that the build of the example compiled. The tests need no debug information. */
const RUST_BUILDS = {
  CARGO_TARGET_DIR: resolve(RUST, "target"),
  CARGO_PROFILE_DEV_DEBUG: "0",
  CARGO_INCREMENTAL: "0",
};
const cargo = (command: string): Command => ({
  argv: ["cargo", command, "--quiet", "--locked", "--manifest-path", join(RUST, "Cargo.toml")],
  env: RUST_BUILDS,
});

const rust: Language = {
  name: "rust",
  missingTools: () => missing({ cargo: "see https://rustup.rs; Debian's cargo is too old" }),
  build: (scratch) => [
    { argv: [process.execPath, "tools/bundle.ts", join(RUST, "protos")] },
    cargo("build"),
    { argv: [process.execPath, "tools/generate-clients.ts", "rust", scratch] },
    { argv: ["cargo", "build", "--quiet"], cwd: join(scratch, "rust"), env: RUST_BUILDS },
  ],
  worker: () => ({ argv: [join(RUST, "target/debug/worker")] }),
  delegator: () => ({ argv: [join(RUST, "target/debug/delegator")] }),
  vectors: () => cargo("test"),
  documented: "rust",
  run(scratch, code) {
    const crate = join(scratch, "first-call");
    mkdirSync(join(crate, "src"), { recursive: true });
    writeFileSync(join(crate, "src/main.rs"), code);
    writeFileSync(join(crate, "Cargo.toml"), firstCallManifest());
    copyFileSync(join(RUST, "Cargo.lock"), join(crate, "Cargo.lock"));
    return [
      { argv: ["cargo", "build", "--quiet"], cwd: crate, env: RUST_BUILDS },
      { argv: [join(RUST_BUILDS.CARGO_TARGET_DIR, "debug/first-call")], cwd: scratch },
    ];
  },
};

/** The manifest of a crate that uses the library of the example. */
function firstCallManifest(): string {
  return `[package]
name = "first-call"
version = "1.0.0"
edition = "2024"

[dependencies]
depute-examples = { path = ${JSON.stringify(resolve(RUST))} }
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
`;
}

export const LANGUAGES: readonly Language[] = [typescript, python, go, java, rust];
