import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Engine } from "./engine.ts";

/** The images of the test, which stand for the published ones. */
export const IMAGES = {
  debian: "depute-test/debian:bookworm",
  node: "depute-test/node:24",
  postgres: "depute-test/postgres:15",
  redis: "depute-test/redis:7",
} as const;

const CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt";

/** Makes the base images from Debian's packages and this machine's Node.js, so that no image registry is needed. */
export function makeBaseImages(engine: Engine): void {
  if (!engine.hasImage(IMAGES.debian)) makeDebian(engine);
  makeNode(engine);
  if (!engine.hasImage(IMAGES.postgres)) build(engine, IMAGES.postgres, POSTGRES);
  if (!engine.hasImage(IMAGES.redis)) build(engine, IMAGES.redis, REDIS);
}

function makeDebian(engine: Engine): void {
  if (spawnSync("debootstrap", ["--version"]).error !== undefined)
    throw new Error("debootstrap is missing; run: apt-get install debootstrap");
  const root = mkdtempSync(join(tmpdir(), "depute-debian-"));
  try {
    execFileSync("debootstrap", ["--variant=minbase", "--include=ca-certificates", "bookworm", root], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    imported(engine, root, IMAGES.debian, []);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Adds this process's Node.js and npm to Debian, with the user `node` of the official image. */
function makeNode(engine: Engine): void {
  const files = mkdtempSync(join(tmpdir(), "depute-node-"));
  try {
    mkdirSync(join(files, "bin"));
    copyFileSync(process.execPath, join(files, "bin/node"));
    chmodSync(join(files, "bin/node"), 0o755);
    cpSync(npmFolder(), join(files, "lib/node_modules/npm"), { recursive: true, dereference: true });
    symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(files, "bin/npm"));
    mkdirSync(join(files, "etc"));
    const config = execFileSync("npm", ["config", "get", "registry"], { encoding: "utf8" }).trim();
    writeFileSync(join(files, "etc/npmrc"), `registry=${config}\n`);
    // A machine behind a proxy has its own certificates. They go into the test's base image, and not into the product's.
    const ownCertificates = existsSync(CERTIFICATES);
    if (ownCertificates) copyFileSync(CERTIFICATES, join(files, "ca-certificates.crt"));
    build(
      engine,
      IMAGES.node,
      [
        `FROM ${IMAGES.debian}`,
        "COPY bin /usr/local/bin",
        "COPY lib /usr/local/lib",
        "COPY etc /usr/local/etc",
        ...(ownCertificates
          ? [
              `COPY ca-certificates.crt ${CERTIFICATES}`,
              `ENV NODE_EXTRA_CA_CERTS=${CERTIFICATES} PIP_CERT=${CERTIFICATES}`,
            ]
          : []),
        "RUN groupadd --gid 1000 node && useradd --uid 1000 --gid node --create-home node",
      ].join("\n"),
      files,
    );
  } finally {
    rmSync(files, { recursive: true, force: true });
  }
}

/** Returns the folder of the npm that runs this program. */
function npmFolder(): string {
  const running = process.env.npm_execpath;
  if (running !== undefined) return dirname(dirname(running));
  return join(execFileSync("npm", ["root", "--global"], { encoding: "utf8" }).trim(), "npm");
}

/** Behaves as the official image does: it makes the user and the database that the variables name. */
const POSTGRES = `FROM ${IMAGES.debian}
RUN apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql \\
 && ln -s /usr/lib/postgresql/15/bin/* /usr/local/bin/ && rm -rf /var/lib/postgresql/15 /var/lib/apt/lists/*
RUN printf '%s\\n' \\
  '#!/bin/sh' \\
  'set -eu' \\
  'data=/var/lib/postgresql/data' \\
  'mkdir -p "$data" /run/postgresql && chown postgres "$data" /run/postgresql && chmod 700 "$data"' \\
  'as() { setpriv --reuid postgres --regid postgres --clear-groups "$@"; }' \\
  'if [ ! -s "$data/PG_VERSION" ]; then' \\
  '  printf "%s" "$POSTGRES_PASSWORD" > /run/postgresql/password && chown postgres /run/postgresql/password' \\
  '  as initdb -D "$data" --username="$POSTGRES_USER" --pwfile=/run/postgresql/password --auth=scram-sha-256 >/dev/null' \\
  '  rm /run/postgresql/password' \\
  '  echo "host all all all scram-sha-256" >> "$data/pg_hba.conf"' \\
  '  echo "CREATE DATABASE $POSTGRES_DB" | as postgres --single -D "$data" postgres >/dev/null' \\
  'fi' \\
  'exec setpriv --reuid postgres --regid postgres --clear-groups postgres -D "$data" -c listen_addresses="*"' \\
  > /entrypoint && chmod +x /entrypoint
ENTRYPOINT ["/entrypoint"]`;

const REDIS = `FROM ${IMAGES.debian}
RUN apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-server \\
 && rm -rf /var/lib/apt/lists/*
CMD ["redis-server", "--protected-mode", "no"]`;

function build(engine: Engine, name: string, dockerfile: string, files?: string): void {
  const folder = files ?? mkdtempSync(join(tmpdir(), "depute-image-"));
  writeFileSync(join(folder, "Dockerfile"), `${dockerfile}\n`);
  engine.run(["build", "--quiet", "--network", "host", "--tag", name, folder]);
  if (files === undefined) rmSync(folder, { recursive: true, force: true });
}

function imported(engine: Engine, root: string, name: string, changes: readonly string[]): void {
  const archive = `${root}.tar`;
  try {
    execFileSync("tar", ["-C", root, "-cf", archive, "."]);
    engine.run(["import", ...changes.flatMap((change) => ["--change", change]), archive, name]);
  } finally {
    rmSync(archive, { force: true });
  }
}
