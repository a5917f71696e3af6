import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

/** A request over HTTP/1.1 or HTTP/2, in Node's common form. */
export type HttpRequest = IncomingMessage | Http2ServerRequest;
export type HttpResponse = ServerResponse | Http2ServerResponse;

/** What a path's placeholders matched, percent-decoded. */
export type PathParameters = Readonly<Record<string, string>>;

/** One plain HTTP address beside the RPCs. */
export interface HttpRoute {
  /** Methods that it answers; others get 405. A route of GET answers HEAD, too: the same without its body. */
  readonly methods: readonly string[];
  /** Media types of the body that it reads; absent when it reads none. */
  readonly takes?: readonly string[];
  /** An exact path, or one with placeholders: `/nekte/{agent}`; `{rest...}` also matches slashes. */
  readonly path: string;
  /** Answers the request. A DeputeError that it throws is answered as JSON; anything else is INTERNAL and logged. */
  readonly handle: (
    request: HttpRequest,
    response: HttpResponse,
    parameters: PathParameters,
  ) => Promise<void>;
}

export type RouteMatch =
  | { route: HttpRoute; parameters: PathParameters }
  /** The path is known, the method is not. */
  | { allow: readonly string[] };

/** Finds routes: exact paths first, then patterns in the order of the list. */
export function createRouteTable(
  routes: readonly HttpRoute[],
): (method: string, path: string) => RouteMatch | undefined {
  const exact = new Map<string, HttpRoute[]>();
  const patterns: { regex: RegExp; names: string[]; route: HttpRoute }[] = [];
  for (const route of routes) {
    if (route.path.includes("{")) patterns.push({ ...compile(route.path), route });
    else exact.set(route.path, [...(exact.get(route.path) ?? []), route]);
  }
  return (method, path) => {
    const allow: string[] = [];
    for (const route of exact.get(path) ?? []) {
      if (answers(route, method)) return { route, parameters: {} };
      allow.push(...allowed(route));
    }
    for (const { regex, names, route } of patterns) {
      const match = regex.exec(path);
      const parameters = match === null ? undefined : decode(names, match);
      if (parameters === undefined) continue;
      if (answers(route, method)) return { route, parameters };
      allow.push(...allowed(route));
    }
    return allow.length > 0 ? { allow: [...new Set(allow)] } : undefined;
  };
}

function answers({ methods }: HttpRoute, method: string): boolean {
  return methods.includes(method === "HEAD" && !methods.includes("HEAD") ? "GET" : method);
}

function allowed({ methods }: HttpRoute): readonly string[] {
  return methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));
}

const PLACEHOLDER = /\{(\w+)(\.\.\.)?\}/g;

function compile(path: string): { regex: RegExp; names: string[] } {
  const names: string[] = [];
  let source = "";
  let from = 0;
  for (const match of path.matchAll(PLACEHOLDER)) {
    source += literally(path.slice(from, match.index));
    source += match[2] === undefined ? "([^/]+)" : "(.+)";
    names.push(match[1] ?? "");
    from = match.index + match[0].length;
  }
  return { regex: new RegExp(`^${source}${literally(path.slice(from))}$`), names };
}

function literally(text: string): string {
  return text.replace(/[.*+?^$()|[\]\\{}]/g, "\\$&");
}

/** Undefined when a part is not percent-encoded UTF-8: such a path matches nothing. */
function decode(names: readonly string[], match: RegExpExecArray): PathParameters | undefined {
  const parameters: Record<string, string> = Object.create(null);
  try {
    names.forEach((name, index) => {
      parameters[name] = decodeURIComponent(match[index + 1] ?? "");
    });
  } catch {
    return undefined;
  }
  return parameters;
}
