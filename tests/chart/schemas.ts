import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";

/** The package with the JSON Schemas of Kubernetes' objects. */
const PACKAGE = "kubernetes-validate==1.37.0";
const FOLDER = new URL("../../.generated/kubernetes-schemas", import.meta.url).pathname;
/** Returns the faults of an object; empty if its schema accepts it. */
export type Validate = (object: KubernetesObject) => string[];

/** An object as a chart makes it. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
}

/** Returns a check by the schemas of one version of Kubernetes. The check refuses members that a schema lacks. */
export function kubernetesSchemas(version: string): Validate {
  const folder = join(FOLDER, `kubernetes_validate/kubernetes-json-schema/v${version}-local-strict`);
  if (!existsSync(folder)) fetchSchemas();
  const read = (file: string) => JSON.parse(readFileSync(join(folder, file), "utf8"));
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema(read("_definitions.json"), "_definitions.json");
  return (object) => {
    const name = `${object.kind.toLowerCase()}${suffixOf(object.apiVersion)}.json`;
    if (!existsSync(join(folder, name)))
      return [`Kubernetes ${version} has no ${object.apiVersion} ${object.kind}`];
    if (ajv.getSchema(name) === undefined) {
      const { $schema: _, ...schema } = read(name);
      ajv.addSchema(schema, name);
    }
    const isValid = ajv.validate(name, object);
    return isValid
      ? []
      : (ajv.errors ?? []).map(({ instancePath, message }) => `${object.kind}${instancePath} ${message}`);
  };
}

/** Returns the part of a schema's name that is made of the API version: `-apps-v1` of `apps/v1`, `-v1` of `v1`. */
function suffixOf(apiVersion: string): string {
  const [group = "", version] = apiVersion.split("/");
  return version === undefined ? `-${group}` : `-${group.split(".")[0]}-${version}`;
}

function fetchSchemas(): void {
  mkdirSync(FOLDER, { recursive: true });
  const run = (args: readonly string[]) =>
    execFileSync("python3", [...args], { stdio: ["ignore", "ignore", "inherit"] });
  run(["-m", "pip", "download", "--quiet", "--no-deps", "--dest", FOLDER, PACKAGE]);
  const [wheel = ""] = readdirSync(FOLDER).filter((file) => file.endsWith(".whl"));
  run(["-m", "zipfile", "-e", join(FOLDER, wheel), FOLDER]);
}
