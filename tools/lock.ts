/** The parts of package-lock.json that `npm ci` needs on every platform. */

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
  /** The package's name, e.g. `@bufbuild/buf-darwin-arm64`. */
  name: string;
  version: string;
  /** The entry of the package that depends on the missing one. */
  parent: LockEntry;
}

/** Matches the end of a platform package's name. */
const PLATFORM =
  /-(aix|android|darwin|freebsd|linux|netbsd|openbsd|sunos|win32)-([a-z0-9]+)(?:-(musl|gnu|glibc))?$/;
/** Maps CPU names in the names of platform packages to npm's CPU names, where the two differ. */
const CPUS: Record<string, string> = { armv7: "arm", aarch64: "arm64" };

/**
 * Returns the platform packages that the lock lacks or has in another version. A platform package is an optional
 * dependency with an exact version and a platform's name.
 */
export function missingPlatforms(lock: Lock): MissingPlatform[] {
  return Object.entries(lock.packages).flatMap(([path, parent]) =>
    Object.entries(parent.optionalDependencies ?? {})
      .filter(([name, version]) => PLATFORM.test(name) && /^\d/.test(version))
      .filter(([name, version]) => {
        const entry = lock.packages[`${path}/node_modules/${name}`] ?? lock.packages[`node_modules/${name}`];
        return entry?.version !== version;
      })
      .map(([name, version]) => ({ name, version, parent })),
  );
}

/**
 * Adds an entry to the lock for each missing package. npm omits an optional package that its registry lacks. `npm ci`
 * then fails because the lock and the dependencies differ. For a package of another platform, `npm ci` needs only the
 * entry, even without an integrity.
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
