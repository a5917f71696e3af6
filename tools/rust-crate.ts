import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { extract } from "tar";

/** The project whose build script and library versions the crate has. */
const EXAMPLE = "examples/rust";

/** The libraries that generated code calls. */
const LIBRARIES = /^(prost|prost-types|tonic|tonic-prost|tonic-types) = /;

const LIBRARY = `//! The contracts of Depute: messages, and clients of all services.
#![allow(clippy::all)]

include!(concat!(env!("OUT_DIR"), "/contracts.rs"));
`;

/**
 * Writes the crate `depute-contracts` into `rust/` below a folder. The crate's build generates the client from
 * the contracts beside it, without protoc.
 *
 * @throws Error if the bundle of contracts does not exist
 */
export function writeRustCrate(out: string): void {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  const bundle = `dist/depute-protos-${version}.tgz`;
  if (!existsSync(bundle)) throw new Error(`${bundle} does not exist; run: npm run bundle`);
  const crate = join(out, "rust");
  const protos = join(crate, "protos");
  rmSync(protos, { recursive: true, force: true });
  mkdirSync(protos, { recursive: true });
  mkdirSync(join(crate, "src"), { recursive: true });
  extract({ file: bundle, cwd: protos, sync: true });
  writeFileSync(join(crate, "Cargo.toml"), manifest(version));
  writeFileSync(join(crate, "src/lib.rs"), LIBRARY);
  for (const file of ["build.rs", "Cargo.lock"]) copyFileSync(join(EXAMPLE, file), join(crate, file));
}

/** The manifest, with the versions of the example. */
function manifest(version: string): string {
  const example = readFileSync(join(EXAMPLE, "Cargo.toml"), "utf8");
  const linesOf = (section: string) =>
    example.split(`\n[${section}]\n`)[1]?.split("\n\n")[0]?.split("\n") ?? [];
  return [
    "[package]",
    'name = "depute-contracts"',
    `version = "${version}"`,
    'edition = "2024"',
    'license = "Apache-2.0"',
    "publish = false",
    "",
    "[dependencies]",
    ...linesOf("dependencies").filter((line) => LIBRARIES.test(line)),
    "",
    "[build-dependencies]",
    ...linesOf("build-dependencies"),
    "",
  ].join("\n");
}
