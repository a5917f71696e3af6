import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { file_buf_validate_validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { printProtoFile } from "./print-proto.ts";
import { type PublishedFiles, publishedFiles } from "./published-files.ts";

const require = createRequire(import.meta.url);

/** The protos of Google: two files of a package with seven thousand. */
export const GOOGLE: PublishedFiles = {
  name: "google-proto-files",
  version: "6.0.1",
  integrity:
    "sha512-fbvUWVNh3rKGlVFWwlUNF7Sk1Tah0a89q02rLTXsWjbKKHGeuURAa8tl9rvu5TyWny1YiSIo5eDqF260Tai6vQ==",
  files: ["google/rpc/error_details.proto", "google/rpc/status.proto"],
};

/** The source of each other third-party proto: path in the import tree, package, and path inside the package. */
const COPIED = [
  ["grpc/grpc/health/v1/health.proto", "grpc-health-check", "proto/health/v1/health.proto"],
  [
    "grpc/grpc/reflection/v1/reflection.proto",
    "@grpc/reflection",
    "build/proto/grpc/reflection/v1/reflection.proto",
  ],
  [
    "grpc/grpc/reflection/v1alpha/reflection.proto",
    "@grpc/reflection",
    "build/proto/grpc/reflection/v1alpha/reflection.proto",
  ],
] as const;

/**
 * Writes one folder below `root` for each origin (buf, google, grpc), each a buf module. No package has the
 * validation rules as text, so the file is printed from the runtime's descriptor.
 */
export function writeThirdPartyProtos(root: string): void {
  for (const [target, packageName, source] of COPIED) {
    const to = join(root, target);
    mkdirSync(dirname(to), { recursive: true });
    copyFileSync(join(packageFolder(packageName), source), to);
  }
  const google = publishedFiles(GOOGLE);
  for (const file of GOOGLE.files) {
    const to = join(root, "google", file);
    mkdirSync(dirname(to), { recursive: true });
    copyFileSync(join(google, file), to);
  }
  const validate = join(root, "buf/buf/validate/validate.proto");
  mkdirSync(dirname(validate), { recursive: true });
  writeFileSync(validate, printProtoFile(file_buf_validate_validate.proto));
}

/** Not every package exports its package.json, so the search follows the resolution paths. */
function packageFolder(name: string): string {
  const entry = require.resolve(name);
  const mark = join("node_modules", name);
  return entry.slice(0, entry.lastIndexOf(mark) + mark.length);
}
