import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { bytesOfFile, fileNames } from "@depute/service";
import type { Validated } from "../../edge/validated.ts";

/** The name of the page that loads all other files of the console. */
const INDEX = "index.html";

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
};

/** The name of a built file contains a hash of its content. So caches may keep the file forever. */
const IMMUTABLE = "public, max-age=31536000, immutable";

/**
 * The index contains the names of the current files. So a cache must revalidate the index before each use. The answer
 * is usually 304.
 */
const ASKED_EACH_TIME = "no-cache";

/** A file of the console: its plain bytes, and the same bytes compressed by gzip. */
export interface ConsoleFile {
  readonly plain: Validated;
  readonly compressed: Validated;
}

/** The files that `npm run build:console` wrote. */
export interface ConsoleFiles {
  readonly index: ConsoleFile;
  /** The built files, by file name without folders. */
  readonly assets: ReadonlyMap<string, ConsoleFile>;
}

/**
 * Reads the files of the console.
 *
 * @param folder the folder that contains `index.html` and `assets/`; its URL ends with a slash
 * @returns undefined if the folder has no index
 */
export function readConsole(folder: URL): ConsoleFiles | undefined {
  if (!fileNames(folder).includes(INDEX)) return undefined;
  const assets = new URL("assets/", folder);
  const names = fileNames(assets).filter((name) => mediaTypeOf(name) !== undefined);
  return {
    index: readFile(new URL(INDEX, folder), INDEX, ASKED_EACH_TIME),
    assets: new Map(names.map((name) => [name, readFile(new URL(name, assets), name, IMMUTABLE)])),
  };
}

function readFile(file: URL, name: string, cacheControl: string): ConsoleFile {
  const bytes = bytesOfFile(file);
  const digest = createHash("sha256").update(bytes).digest("base64url");
  const common = { contentType: mediaTypeOf(name) ?? "", cacheControl };
  return {
    plain: { ...common, bytes, etag: `"${digest}"` },
    // A strong entity tag identifies exact bytes. So the compressed form needs a tag of its own.
    compressed: { ...common, bytes: gzipSync(bytes), etag: `"${digest}-gzip"`, contentEncoding: "gzip" },
  };
}

function mediaTypeOf(name: string): string | undefined {
  return MEDIA_TYPES[name.slice(name.lastIndexOf("."))];
}
