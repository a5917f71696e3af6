import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { writeThirdPartyProtos } from "./third-party-protos.ts";

/** The file with the descriptors of the last released contracts. The file holds no third-party contract. */
export const RELEASED = "proto/released/v1.binpb";

const PRESENT = "present.binpb";

/** The result of comparing the contracts on disk with the released contracts. */
export type Outcome =
  | { kind: "compatible" }
  | { kind: "breaking"; report: string }
  /** No contracts were released. */
  | { kind: "no-release" };

/** Compares `proto/` below `root` with the released contracts, by the breaking rules of buf.yaml. */
export function checkBreaking(root: string): Outcome {
  const released = join(root, RELEASED);
  if (!existsSync(released)) return { kind: "no-release" };
  const folder = mkdtempSync(join(tmpdir(), "depute-breaking-"));
  try {
    const image = join(folder, "released.binpb");
    writeFileSync(image, withImports(readFileSync(released), build(root, folder)));
    // buf compares two workspaces module by module, but the released contracts are one image (a set of compiled
    // descriptors). Therefore the current contracts are compiled to an image too.
    const { status, output } = buf(root, "breaking", join(folder, PRESENT), "--against", image);
    return status === 0 ? { kind: "compatible" } : { kind: "breaking", report: output };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * Records the contracts on disk as the released ones. Throws an Error with buf's report if the contracts on
 * disk break the contracts recorded before.
 */
export function recordContracts(root: string): void {
  const outcome = checkBreaking(root);
  if (outcome.kind === "breaking") throw new Error(outcome.report);
  const folder = mkdtempSync(join(tmpdir(), "depute-breaking-"));
  try {
    const ownFiles = build(root, folder).file.filter((file) => isOwn(root, file.name));
    for (const file of ownFiles) delete file.sourceCodeInfo;
    mkdirSync(dirname(join(root, RELEASED)), { recursive: true });
    const set = create(FileDescriptorSetSchema, { file: ownFiles });
    writeFileSync(join(root, RELEASED), toBinary(FileDescriptorSetSchema, set));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns the descriptors of all files on disk, imports included. */
function build(root: string, folder: string): FileDescriptorSet {
  const thirdParty = join(root, ".generated", "third_party");
  if (!existsSync(thirdParty)) writeThirdPartyProtos(thirdParty);
  const image = join(folder, "present.binpb");
  const { status, output } = buf(
    root,
    "build",
    "--as-file-descriptor-set",
    "--exclude-source-info",
    "-o",
    image,
  );
  if (status !== 0) throw new Error(`the contracts do not compile:\n${output}`);
  return fromBinary(FileDescriptorSetSchema, readFileSync(image));
}

/** Returns the released files together with the current third-party imports, because buf resolves every import. */
function withImports(released: Uint8Array, current: FileDescriptorSet): Uint8Array {
  const { file } = fromBinary(FileDescriptorSetSchema, released);
  const names = new Set(file.map(({ name }) => name));
  const imports = current.file.filter(({ name, package: packageName }) => {
    return !names.has(name) && isThirdParty(packageName);
  });
  return toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file: [...imports, ...file] }));
}

function isThirdParty(packageName: string): boolean {
  return /^(buf|google|grpc)\./.test(packageName);
}

function isOwn(root: string, name: string): boolean {
  return existsSync(join(root, "proto", name));
}

function buf(cwd: string, ...args: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr, error } = spawnSync("buf", args, { cwd, encoding: "utf8" });
  if (error) throw error;
  return { status, output: stdout + stderr };
}
