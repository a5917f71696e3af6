/** What package-lock.json has to hold so that `npm ci` works everywhere. */

export interface LockEntry {
  version?: string;
  resolved?: string;
  link?: boolean;
  integrity?: string;
  optionalDependencies?: Record<string, string>;
  [member: string]: unknown;
}

export interface Lock {
  packages: Record<string, LockEntry>;
  [member: string]: unknown;
}

const BUF = "node_modules/@bufbuild/buf";

/** How package names say os and cpu, where npm's words differ. */
const CPUS: Record<string, string> = { armv7: "arm", aarch64: "arm64" };

/** Names and versions of buf's platform packages that the lock lacks, e.g. `@bufbuild/buf-darwin-arm64`. */
export function missingPlatforms(lock: Lock): [name: string, version: string][] {
  const wanted = Object.entries(lock.packages[BUF]?.optionalDependencies ?? {});
  return wanted.filter(([name, version]) => lock.packages[`node_modules/${name}`]?.version !== version);
}

/**
 * The lock with an entry for each of buf's platform packages.
 *
 * npm leaves optional packages out of the lock when the registry that it asked does not have them, and `npm ci` then stops because
 * the lock and package.json differ. An entry that is for other platforms is enough, even without an integrity.
 */
export function withPlatforms(lock: Lock): Lock {
  const stubs = missingPlatforms(lock).map(([name, version]) => {
    const [os = "", cpu = ""] = name.slice("@bufbuild/buf-".length).split("-");
    const stub: LockEntry = {
      version,
      cpu: [CPUS[cpu] ?? cpu],
      dev: true,
      license: "Apache-2.0",
      optional: true,
      os: [os],
      engines: { node: ">=12" },
    };
    return [`node_modules/${name}`, stub] as const;
  });
  const packages = [...Object.entries(lock.packages), ...stubs].sort(([a], [b]) => a.localeCompare(b, "en"));
  return { ...lock, packages: Object.fromEntries(packages) };
}
