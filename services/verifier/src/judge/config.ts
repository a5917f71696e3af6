import { readFileSync } from "node:fs";
import { isObject } from "@depute/core";

/** One endpoint of a model's maker, as configuration names it. */
export interface JudgeEndpoint {
  models: readonly string[];
  /** Whose form requests and answers have. */
  style: "openai" | "anthropic";
  url: URL;
  /** The secret; empty for an endpoint without one. */
  key: string;
  /** Microcents for a million tokens; 1 USD is 100,000,000 microcents. */
  inputPrice: number;
  outputPrice: number;
}

/** The judges cannot be used as configured; the message says what to do. */
export class JudgeConfigError extends Error {
  override readonly name = "JudgeConfigError";
}

const MEMBERS = [
  "models",
  "style",
  "url",
  "keyFile",
  "inputMicrocentsPerMillion",
  "outputMicrocentsPerMillion",
];

/**
 * Reads the file that names the judges: a JSON list of `{models, style, url, keyFile?, inputMicrocentsPerMillion?,
 * outputMicrocentsPerMillion?}`. None for an empty name.
 *
 * @param hosts the hosts, each `name` or `name:port`, to which requests may go
 * @throws JudgeConfigError
 */
export function readJudges(file: string, hosts: readonly string[]): Map<string, JudgeEndpoint> {
  const judges = new Map<string, JudgeEndpoint>();
  if (file === "") return judges;
  const list: unknown = parse(file);
  if (!Array.isArray(list)) throw new JudgeConfigError(`${file} does not hold a list of judges`);
  for (const [i, each] of list.entries()) {
    const endpoint = endpointOf(each, `${file}[${i}]`, hosts);
    for (const model of endpoint.models) {
      if (judges.has(model)) throw new JudgeConfigError(`${file} names the model ${model} twice`);
      judges.set(model, endpoint);
    }
  }
  return judges;
}

function endpointOf(value: unknown, at: string, hosts: readonly string[]): JudgeEndpoint {
  if (!isObject(value)) throw new JudgeConfigError(`${at} is not an object`);
  const unknown = Object.keys(value).find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined) throw new JudgeConfigError(`${at} has the unknown member ${unknown}`);
  const {
    models,
    style,
    url,
    keyFile,
    inputMicrocentsPerMillion = 0,
    outputMicrocentsPerMillion = 0,
  } = value;
  const isText = (each: unknown) => typeof each === "string" && each !== "";
  if (!Array.isArray(models) || models.length === 0 || !models.every(isText)) {
    throw new JudgeConfigError(`${at}.models: names of models are needed`);
  }
  if (style !== "openai" && style !== "anthropic")
    throw new JudgeConfigError(`${at}.style: openai or anthropic`);
  if (typeof url !== "string" || !URL.canParse(url))
    throw new JudgeConfigError(`${at}.url: an address is needed`);
  const address = new URL(url);
  if (address.protocol !== "https:" && address.protocol !== "http:") {
    throw new JudgeConfigError(`${at}.url: http or https is needed`);
  }
  if (!hosts.includes(address.host) && !hosts.includes(address.hostname)) {
    throw new JudgeConfigError(`${at}.url: ${address.host} is not in DEPUTE_VERIFIER_OUTBOUND_HOSTS`);
  }
  for (const price of [inputMicrocentsPerMillion, outputMicrocentsPerMillion]) {
    if (!Number.isSafeInteger(price) || (price as number) < 0) {
      throw new JudgeConfigError(`${at}: prices are whole numbers of microcents`);
    }
  }
  return {
    models: models as string[],
    style,
    url: address,
    key: keyFile === undefined ? "" : readKey(keyFile, at),
    inputPrice: inputMicrocentsPerMillion as number,
    outputPrice: outputMicrocentsPerMillion as number,
  };
}

function readKey(file: unknown, at: string): string {
  if (typeof file !== "string") throw new JudgeConfigError(`${at}.keyFile: a file is needed`);
  try {
    return readFileSync(file, "utf8").trim();
  } catch (cause) {
    throw new JudgeConfigError(`${at}.keyFile: ${file} cannot be read`, { cause });
  }
}

function parse(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw new JudgeConfigError(`${file} cannot be read as JSON`, { cause });
  }
}
