import { pathToFileURL } from "node:url";
import { onDemand } from "../../tools/on-demand.ts";
import type { Json } from "../gateway/platform.ts";

const MODULES = `${onDemand("mcp")}/@modelcontextprotocol/sdk/dist/esm/`;

/**
 * Imports a module of the official TypeScript SDK 1.x, which supports the revisions before 2026-07-28.
 *
 * @param path the module's path without its suffix, for example `client/index`
 */
export const earlierSdk = (path: string): Promise<Json> => import(pathToFileURL(`${MODULES}${path}.js`).href);
