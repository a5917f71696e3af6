import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeThirdPartyProtos } from "./third-party-protos.ts";

/** What a comparison of the contracts with those of the base revision found. */
export type Outcome =
  | { kind: "compatible"; base: string }
  | { kind: "breaking"; base: string; report: string }
  /** There is nothing to compare with. */
  | { kind: "no-base"; why: string }
  /** There would be something, but it is not on this machine. */
  | { kind: "lacking"; why: string };

const LARGEST_ARCHIVE = 256 * 1024 * 1024;

/**
 * Compares `proto/` below `root`, as it is on disk, with the base revision by buf's breaking rules of buf.yaml.
 *
 * The base is where the branch left origin/main; on main itself, the commit before.
 */
export function checkBreaking(root: string): Outcome {
  if (tryGit(root, "rev-parse", "--verify", "--quiet", "HEAD") === undefined) {
    return { kind: "no-base", why: "there is no git history here" };
  }
  const base = findBase(root);
  if (base === undefined) {
    return tryGit(root, "rev-parse", "--is-shallow-repository") === "true"
      ? {
          kind: "lacking",
          why: "this clone is shallow and lacks the base revision; run: git fetch --unshallow",
        }
      : { kind: "no-base", why: "this is the first commit" };
  }
  if (tryGit(root, "cat-file", "-e", `${base}:proto`) === undefined) {
    return { kind: "no-base", why: `the base revision ${base.slice(0, 12)} has no contracts` };
  }
  const folder = mkdtempSync(join(tmpdir(), "depute-breaking-"));
  try {
    return compare(root, base, folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function findBase(root: string): string | undefined {
  const head = tryGit(root, "rev-parse", "HEAD");
  const fork = tryGit(root, "merge-base", "HEAD", "origin/main");
  return fork !== undefined && fork !== head
    ? fork
    : tryGit(root, "rev-parse", "--verify", "--quiet", "HEAD^");
}

/** The base's contracts are laid out with today's settings and third-party protos: only the contracts are compared. */
function compare(root: string, base: string, folder: string): Outcome {
  const archive = execFileSync("git", ["archive", base, "proto"], { cwd: root, maxBuffer: LARGEST_ARCHIVE });
  execFileSync("tar", ["-x", "-C", folder], { input: archive });
  cpSync(join(root, "buf.yaml"), join(folder, "buf.yaml"));
  const thirdParty = join(".generated", "third_party");
  writeThirdPartyProtos(join(folder, thirdParty));
  if (!existsSync(join(root, thirdParty))) writeThirdPartyProtos(join(root, thirdParty));

  const revision = base.slice(0, 12);
  const image = join(folder, "base.binpb");
  const build = buf(folder, "build", "-o", image);
  // It is history: nobody can mend it, and nobody can have built on it.
  if (build.status !== 0) {
    return { kind: "no-base", why: `the contracts of the base revision ${revision} do not compile` };
  }
  const breaking = buf(root, "breaking", "--against", image);
  return breaking.status === 0
    ? { kind: "compatible", base: revision }
    : { kind: "breaking", base: revision, report: breaking.output };
}

function buf(cwd: string, ...args: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr, error } = spawnSync("buf", args, { cwd, encoding: "utf8" });
  if (error) throw error;
  return { status, output: stdout + stderr };
}

function tryGit(cwd: string, ...args: string[]): string | undefined {
  const { status, stdout } = spawnSync("git", args, { cwd, encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
}
