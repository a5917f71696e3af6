/** The table of rooms of docs/architecture.md: which folder may import which. `*` stands for each folder there. */
export const ROOMS: Record<string, readonly string[]> = {
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
    "packages/grpc-js",
  ],
  "packages/client": ["packages/contracts", "packages/core", "packages/dct", "packages/grpc-js"],
  "services/*": ["packages/*"],
  gateway: ["packages/*"],
  cli: ["packages/*", "services/*", "gateway"],
  "examples/*": ["packages/*", "cli"],
};

/** Folders of the repository's own, no workspaces, that import every room and whatever any of them depends on. */
export const SEES_EVERYTHING: readonly string[] = ["bench", "tests"];

/** What a file under `rules/` may not import: everything that does I/O. Node's own modules are refused besides. */
export const NOT_IN_RULES: readonly string[] = [
  "@connectrpc/connect-node",
  "@depute/bus",
  "@depute/service",
  "@depute/store",
  "@grpc/grpc-js",
  "ioredis",
];

/** Folders beside `rules/` that do I/O. */
export const NOT_BESIDE_RULES: readonly string[] = ["handlers", "store"];

/** Whether a pattern of the table covers a workspace's folder. */
export function covers(pattern: string, folder: string): boolean {
  return pattern.endsWith("/*") ? folder.startsWith(pattern.slice(0, -1)) : pattern === folder;
}
