import type { IncomingHttpHeaders } from "node:http";
import { ErrorReason } from "@depute/core";
import { HttpRefusal } from "@depute/service";
import { type Answer, names, type Wire } from "../../edge/route.ts";
import { type ConsoleFile, type ConsoleFiles, readConsole } from "./documents.ts";

const HOME = "/console";

/**
 * The Content Security Policy of the page. The page loads scripts and styles only from its own files, images also from
 * `data:` URLs, and calls only its own origin. (Content Security Policy Level 3; Trusted Types)
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const HEADERS = {
  "content-security-policy": POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  vary: "Origin, Accept-Encoding",
} as const;

/**
 * Serves the console: static files that call the public RPCs from the browser. Redirects browsers from `/` to
 * the console.
 *
 * @param folder the folder of the built files, with a slash at the end
 */
export function consoleWire(folder: URL): Wire {
  let files: ConsoleFiles | undefined;
  const built = () => {
    // The console may be built only after the start. So each request reads the folder again until it contains the
    // files.
    files ??= readConsole(folder);
    if (files === undefined) {
      throw missing(HOME, "the console is not built; run `npm ci`, then `npm run build:console`");
    }
    return files;
  };
  return {
    name: "console",
    claims: [HOME],
    headersOf: (path) => (path === "/" ? { vary: "Origin, Accept" } : HEADERS),
    routes: [
      {
        method: "GET",
        path: "/",
        gives: ["text/html", "application/json"],
        answer: async ({ headers }) => {
          if (names(headers, "text/html")) return redirect(HOME);
          throw missing("/", "the address has no document; the console is at /console");
        },
      },
      {
        method: "GET",
        path: HOME,
        gives: ["text/html"],
        answer: async ({ headers }) => send(built().index, headers),
      },
      { method: "GET", path: `${HOME}/`, gives: ["text/html"], answer: async () => redirect(HOME) },
      {
        method: "GET",
        path: `${HOME}/assets/{file}`,
        gives: ["text/javascript", "text/css"],
        answer: async ({ parameters, headers }) => {
          const file = built().assets.get(parameters.file ?? "");
          if (file === undefined)
            throw missing(`${HOME}/assets/{file}`, "the file does not exist in the console");
          return send(file, headers);
        },
      },
    ],
  };
}

function send({ plain, compressed }: ConsoleFile, headers: IncomingHttpHeaders): Answer {
  const { "accept-encoding": encodings } = headers;
  const takesGzip =
    typeof encodings === "string" && /(^|[\s,])gzip(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(encodings);
  return { kind: "document", document: takesGzip ? compressed : plain };
}

function redirect(location: string): Answer {
  return { kind: "text", text: "", status: 303, headers: { location, "content-type": "text/plain" } };
}

function missing(method: string, message: string): HttpRefusal {
  return new HttpRefusal(404, ErrorReason.UNKNOWN_METHOD, message, { metadata: { method } });
}
