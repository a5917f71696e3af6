import type { JsonValue } from "@bufbuild/protobuf";
import type { Timers } from "@depute/core";
import {
  ConfigError,
  type ProxyConfig,
  readConfig,
  SHIPPED_MAPS,
  type UpstreamAddress,
  type UpstreamConfig,
} from "@depute/mcp";
import { type Logger, SettingsError, textOfFile } from "@depute/service";
import { MESSAGE } from "./names.ts";

/** Milliseconds between two checks of the configuration file for changes. */
const LOOK_MS = 1000;

/** The configuration of an MCP server that has an address. The gateway cannot serve a server without an address. */
export interface ServableUpstream extends UpstreamConfig {
  readonly address: UpstreamAddress;
}

type ServableConfig = ProxyConfig<ServableUpstream>;

/** Parses and checks a configuration. Throws ConfigError or SyntaxError. */
function configIn(text: string): ServableConfig {
  const { upstreams } = readConfig(JSON.parse(text) as JsonValue, SHIPPED_MAPS);
  const faults: string[] = [];
  const servable = new Map<string, ServableUpstream>();
  for (const [name, upstream] of upstreams) {
    const { address } = upstream;
    if (name === MESSAGE)
      faults.push(`/upstreams/${name}: the platform itself uses this name: choose another name`);
    if (address === undefined) faults.push(`/upstreams/${name}: stdio or http is required`);
    else servable.set(name, { ...upstream, address });
  }
  if (faults.length > 0) throw new ConfigError(faults);
  return { upstreams: servable };
}

function settingsError(path: string, cause: unknown): SettingsError {
  const faults = cause instanceof ConfigError ? cause.faults.join("\n  ") : (cause as Error).message;
  return new SettingsError(`the MCP configuration ${path} is not valid:\n  ${faults}`, { cause });
}

export interface McpConfigFileOptions {
  /** The path of the file; empty if there are no servers. */
  readonly path: string;
  readonly timers: Timers;
  readonly log: Logger;
  /** Called with each valid configuration: the first one, and every changed one. */
  readonly apply: (config: ServableConfig) => void;
}

/**
 * The configuration file that lists the MCP servers behind the proxy. A change of the file takes effect within seconds,
 * if the whole file is valid. If it is invalid, the current servers continue, and the log reports the location of each
 * fault.
 */
export class McpConfigFile {
  readonly #options: McpConfigFileOptions;
  #text = "";
  /** The message of the last logged fault, so that the same fault is not logged again. */
  #fault = "";
  #cancel = () => {};

  /**
   * Reads the file, and then checks it for changes every LOOK_MS.
   *
   * @throws SettingsError that names each fault by its location
   */
  constructor(options: McpConfigFileOptions) {
    this.#options = options;
    const { path, apply } = options;
    if (path === "") return;
    try {
      this.#text = textOfFile(path);
      apply(configIn(this.#text));
    } catch (cause) {
      throw settingsError(path, cause);
    }
    this.#wait();
  }

  close(): void {
    this.#cancel();
  }

  #wait(): void {
    this.#cancel = this.#options.timers.after(LOOK_MS, () => {
      this.#look();
      this.#wait();
    });
  }

  #look(): void {
    const { path, log, apply } = this.#options;
    try {
      // Compares the text and not the modification time: two writes of a program can have the same modification time.
      const text = textOfFile(path);
      if (text === this.#text) {
        this.#fault = "";
        return;
      }
      const config = configIn(text);
      apply(config);
      this.#text = text;
      this.#fault = "";
      log.info({ path, servers: [...config.upstreams.keys()] }, "mcp: the changed configuration applies");
    } catch (cause) {
      const { message } = settingsError(path, cause);
      if (message === this.#fault) return;
      this.#fault = message;
      log.warn({ path }, `mcp: the servers do not change: ${message}`);
    }
  }
}
