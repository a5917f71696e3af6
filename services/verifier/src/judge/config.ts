import { isObject } from "@depute/core";
import { textOfFile } from "@depute/service";

/** The configured endpoint of one provider of models. */
export interface JudgeEndpoint {
  models: readonly string[];
  /** The provider's API, which determines the form of requests and responses. */
  style: "openai" | "anthropic";
  url: URL;
  /** The API key; empty if the endpoint needs none. */
  key: string;
  /**
   * Prices in microcents for one million language-model tokens: of the input (inputPrice), and of the output
   * (outputPrice). 1 USD is 100,000,000 microcents.
   */
  inputPrice: number;
  outputPrice: number;
}

/** Thrown if the configuration of judges is invalid. The message says how to correct it. */
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
 * Reads the file of judges: a JSON array of `{models, style, url, keyFile?, inputMicrocentsPerMillion?,
 * outputMicrocentsPerMillion?}`.
 *
 * @param file path of the file; empty without judges
 * @param hosts the allowed hosts of endpoints, each `name` or `name:port`
 * @throws JudgeConfigError
 */
export function readJudges(file: string, hosts: readonly string[]): Map<string, JudgeEndpoint> {
  const judges = new Map<string, JudgeEndpoint>();
  if (file === "") return judges;
  const list: unknown = parse(file);
  if (!Array.isArray(list))
    throw new JudgeConfigError(`${file} has no list of judges; write a JSON list of objects`);
  for (const [i, each] of list.entries()) {
    const endpoint = endpointOf(each, `${file}[${i}]`, hosts);
    for (const model of endpoint.models) {
      if (judges.has(model))
        throw new JudgeConfigError(`${file} has the model ${model} twice; keep one entry`);
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
    throw new JudgeConfigError(`${at}.models: must be a list of names of models`);
  }
  if (style !== "openai" && style !== "anthropic")
    throw new JudgeConfigError(`${at}.style: must be openai or anthropic`);
  if (typeof url !== "string" || !URL.canParse(url))
    throw new JudgeConfigError(`${at}.url: must be an address`);
  const address = new URL(url);
  if (address.protocol !== "https:" && address.protocol !== "http:") {
    throw new JudgeConfigError(`${at}.url: must be an http or https address`);
  }
  if (!hosts.includes(address.host) && !hosts.includes(address.hostname)) {
    throw new JudgeConfigError(`${at}.url: ${address.host} is not in DEPUTE_VERIFIER_OUTBOUND_HOSTS`);
  }
  for (const price of [inputMicrocentsPerMillion, outputMicrocentsPerMillion]) {
    if (!Number.isSafeInteger(price) || (price as number) < 0) {
      throw new JudgeConfigError(`${at}: prices must be whole numbers of microcents`);
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
  if (typeof file !== "string") throw new JudgeConfigError(`${at}.keyFile: must be the path of a file`);
  try {
    return textOfFile(file).trim();
  } catch (cause) {
    throw new JudgeConfigError(`${at}.keyFile: ${file} cannot be read`, { cause });
  }
}

function parse(file: string): unknown {
  try {
    return JSON.parse(textOfFile(file));
  } catch (cause) {
    throw new JudgeConfigError(`${file} cannot be read as JSON`, { cause });
  }
}
