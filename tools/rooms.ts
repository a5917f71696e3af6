/**
 * The table of docs/internals/layout.md: for each folder (room), the folders from which its files may import.
 * `*` matches any folder name.
 */
export const ROOMS: Readonly<Record<string, readonly string[]>> = {
  "packages/contracts": [],
  "packages/core": ["packages/contracts"],
  "packages/wire": ["packages/contracts", "packages/core"],
  "packages/dct": ["packages/core"],
  "packages/store": ["packages/core"],
  "packages/bus": ["packages/core"],
  "packages/asp": ["packages/contracts", "packages/core", "packages/dct", "packages/wire"],
  "packages/mcp": ["packages/contracts", "packages/core", "packages/dct", "packages/wire"],
  "packages/grpc-js": [],
  "packages/service": [
    "packages/contracts",
    "packages/core",
    "packages/bus",
    "packages/store",
    "packages/client",
    "packages/grpc-js",
  ],
  "packages/client": ["packages/contracts", "packages/core", "packages/dct", "packages/grpc-js"],
  "services/*": ["packages/*"],
  gateway: ["packages/*"],
  cli: ["packages/*", "services/*", "gateway"],
  console: ["packages/asp", "packages/contracts", "packages/core", "packages/dct", "packages/wire"],
  "examples/*": ["packages/*", "cli"],
};

/** Folders without a workspace that may import every folder of ROOMS and its dependencies. */
export const SEES_EVERYTHING: readonly string[] = ["bench", "tests"];

/** Packages and folders that do I/O. No file under `rules/` imports any of them, nor a Node.js module. */
export const NOT_IN_RULES = {
  workspaces: ["packages/bus", "packages/service", "packages/store"],
  packages: ["@connectrpc/connect-node", "@grpc/grpc-js", "ioredis", "pg"],
  /** The folders of a service that do I/O, next to `rules/`. */
  folders: ["handlers", "store"],
} as const;

/**
 * A core and the modules beside it. A module imports only the core's port. The rules of a module import only
 * the core's types without I/O. No module imports another module.
 */
export interface Modules {
  readonly folder: string;
  readonly core: string;
  /** The file of the core that modules import. */
  readonly port: string;
  /** The file of the core with the port's types that need no I/O; rules of modules may import it. */
  readonly words: string;
  readonly modules: readonly string[];
}

export const MODULES: readonly Modules[] = [
  {
    folder: "services/tasks/src",
    core: "core",
    port: "core/index.ts",
    words: "core/rules/index.ts",
    modules: ["conversations", "executions", "messages", "push", "reviews", "sessions"],
  },
];

/**
 * Workspaces that ROOMS does not name.
 *
 * @param manifests paths of the `package.json` files of all workspaces
 */
export function roomless(manifests: readonly string[]): string[] {
  const folders = manifests.map((manifest) => manifest.slice(0, -"/package.json".length));
  const isRoom = (folder: string) => Object.keys(ROOMS).some((room) => covers(room, folder));
  return folders.filter((folder) => !isRoom(folder));
}

function covers(room: string, folder: string): boolean {
  return room.endsWith("/*") ? folder.startsWith(room.slice(0, -1)) : room === folder;
}
