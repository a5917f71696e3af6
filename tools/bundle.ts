/**
 * `npm run bundle`: writes the contracts for other languages to dist/, see docs/clients.md. `npm run bundle -- FOLDER` writes
 * the files of the archive into a folder instead.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { create as pack } from "tar";
import { publishedFiles } from "./published-files.ts";
import { GOOGLE, writeThirdPartyProtos } from "./third-party-protos.ts";

const OUT = "dist";
const THIRD_PARTY = ".generated/third_party";

/**
 * The official validate.proto, with its package options. A Go binary panics on a file that was printed from
 * descriptors.
 */
const VALIDATE = {
  pinned: "tools/bundle-validate.txt",
  path: "upstream/proto/buf/validate/validate.proto",
  kept: ".generated/validate.proto",
  sha256: "817951eab518442950f1982be24b2c3154b214b40e42f49b915cbf5181e6ee80",
};

/** Timeout of one download, in milliseconds. */
const MAX_FETCH_MS = 120_000;

/** The folder of google's proto files that a bundle may contain: those of the contracts, and the files that these import. */
const GOOGLE_FILES = publishedFiles({
  ...GOOGLE,
  files: [
    ...GOOGLE.files,
    ...["any", "descriptor", "duration", "empty", "field_mask", "struct", "timestamp"].map(
      (name) => `google/protobuf/${name}.proto`,
    ),
  ],
});

/** The file with the messages for error details. No contract imports it, but clients need it to read errors. */
const ERROR_DETAILS = "google/rpc/error_details.proto";

/**
 * Extracts the official validate.proto from the source archive of Python's `protovalidate`, unless an earlier run did.
 */
function fetchValidate(): string {
  if (existsSync(VALIDATE.kept)) return VALIDATE.kept;
  const scratch = mkdtempSync(join(tmpdir(), "depute-bundle-"));
  try {
    const pip = [
      "-m",
      "pip",
      "download",
      "--quiet",
      "--no-deps",
      "--no-binary",
      "protovalidate",
      "--require-hashes",
    ];
    const options = { stdio: "pipe", timeout: MAX_FETCH_MS } as const;
    execFileSync("python3", [...pip, "-r", VALIDATE.pinned, "-d", scratch], options);
    const archive = readdirSync(scratch).find((name) => name.endsWith(".tar.gz")) ?? "";
    execFileSync("tar", ["xzf", join(scratch, archive), "-C", scratch, "--strip-components=1"], options);
    const fetched = join(scratch, VALIDATE.path);
    const digest = createHash("sha256").update(readFileSync(fetched)).digest("hex");
    if (digest !== VALIDATE.sha256) throw new Error(`${VALIDATE.path} has the digest ${digest}`);
    mkdirSync(".generated", { recursive: true });
    cpSync(fetched, VALIDATE.kept);
    return VALIDATE.kept;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Writes the import tree below `root`: the contracts, and all files that they import. */
function layOut(root: string): void {
  cpSync("proto", root, { recursive: true, filter: (path) => !/\.(binpb|md|json)$/.test(path) });
  const validate = join(root, "buf/validate/validate.proto");
  mkdirSync(join(root, "buf/validate"), { recursive: true });
  cpSync(fetchValidate(), validate);
  cpSync(join(GOOGLE_FILES, ERROR_DETAILS), join(root, ERROR_DETAILS));
  for (const file of filesBelow(root)) addImports(root, file);
}

/** Copies google's files that a file imports, and the files that those import. */
function addImports(root: string, file: string): void {
  const text = readFileSync(join(root, file), "utf8");
  for (const [, path = ""] of text.matchAll(/^import (?:public )?"(google\/[^"]+)";/gm)) {
    if (existsSync(join(root, path))) continue;
    cpSync(join(GOOGLE_FILES, path), join(root, path));
    addImports(root, path);
  }
}

function filesBelow(root: string): string[] {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(root, join(parentPath, name)))
    .sort();
}

/** Writes the archive and the descriptor set of an import tree to dist/. */
async function bundle(root: string): Promise<void> {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  rmSync(OUT, { recursive: true, force: true });
  mkdirSync(OUT, { recursive: true });
  const archive = join(OUT, `depute-protos-${version}.tgz`);
  // The archive holds no times, owners or order of the file system, so that the same contracts always give the same
  // bytes.
  await pack({ file: archive, cwd: root, gzip: true, portable: true, mtime: new Date(0) }, filesBelow(root));
  const image = join(OUT, "depute.binpb");
  execFileSync("buf", ["build", "--output", image, root], { stdio: "inherit" });
  for (const file of [archive, image]) console.log(`${file}: ${readFileSync(file).length} bytes`);
}

const [folder] = process.argv.slice(2);
const root = mkdtempSync(join(tmpdir(), "depute-protos-"));
try {
  if (!existsSync(THIRD_PARTY)) writeThirdPartyProtos(THIRD_PARTY);
  layOut(root);
  if (folder === undefined) {
    await bundle(root);
  } else {
    rmSync(folder, { recursive: true, force: true });
    cpSync(root, folder, { recursive: true });
  }
} catch (error) {
  const { stderr, message } = error as { stderr?: Buffer; message: string };
  console.error(`bundle: ${(stderr?.toString().trim() || message).split("\n").at(-1)}`);
  process.exitCode = 1;
} finally {
  rmSync(root, { recursive: true, force: true });
}
