/** What package-lock.json has to hold so that `npm ci` works everywhere. */

export interface LockEntry {
  version?: string;
  resolved?: string;
  integrity?: string;
  license?: string;
  dev?: boolean;
  optionalDependencies?: Record<string, string>;
  [member: string]: unknown;
}

export interface Lock {
  packages: Record<string, LockEntry>;
  [member: string]: unknown;
}

export interface MissingPlatform {
  /** e.g. `@bufbuild/buf-darwin-arm64` */
  name: string;
  version: string;
  /** The entry of the package that wants it. */
  parent: LockEntry;
}

/** How the names of platform packages end. */
const PLATFORM =
  /-(aix|android|darwin|freebsd|linux|netbsd|openbsd|sunos|win32)-([a-z0-9]+)(?:-(musl|gnu|glibc))?$/;
/** How they say the cpu, where npm's word differs. */
const CPUS: Record<string, string> = { armv7: "arm", aarch64: "arm64" };

/**
 * The platform packages that the lock lacks or has in another version: optional dependencies with an exact version and the
 * name of a platform.
 */
export function missingPlatforms(lock: Lock): MissingPlatform[] {
  return Object.entries(lock.packages).flatMap(([path, parent]) =>
    Object.entries(parent.optionalDependencies ?? {})
      .filter(([name, version]) => PLATFORM.test(name) && /^\d/.test(version))
      .filter(([name, version]) => {
        const found = lock.packages[`${path}/node_modules/${name}`] ?? lock.packages[`node_modules/${name}`];
        return found?.version !== version;
      })
      .map(([name, version]) => ({ name, version, parent })),
  );
}

/**
 * The lock with an entry for each of them.
 *
 * npm leaves an optional package out of the lock when the registry that it asked does not have it, and `npm ci` then stops
 * because the lock and the dependencies differ. An entry that is for another platform is enough, even without an integrity.
 */
export function withPlatforms(lock: Lock): Lock {
  const stubs = missingPlatforms(lock).map(
    (missing) => [`node_modules/${missing.name}`, stubOf(missing)] as const,
  );
  const packages = Object.entries({ ...lock.packages, ...Object.fromEntries(stubs) });
  packages.sort(([a], [b]) => a.localeCompare(b, "en"));
  return { ...lock, packages: Object.fromEntries(packages) };
}

function stubOf({ name, version, parent }: MissingPlatform): LockEntry {
  const [, os = "", cpu = "", libc] = PLATFORM.exec(name) ?? [];
  return {
    version,
    cpu: [CPUS[cpu] ?? cpu],
    ...(parent.dev && { dev: true }),
    ...(libc && { libc: [libc === "musl" ? "musl" : "glibc"] }),
    ...(parent.license && { license: parent.license }),
    optional: true,
    os: [os],
  };
}
