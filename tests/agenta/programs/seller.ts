/** An agent that sells, over plain HTTP with JSON: `node seller.ts http://127.0.0.1:8080`. */
import { createHash } from "node:crypto";
import { call, type Json, post, register, say } from "./http.ts";

const url = process.argv[2] ?? "http://127.0.0.1:8080";
const AGENT = "words";
const ORGANIZATION = "org:words";

await register(url, AGENT, ORGANIZATION);

async function publish(change: Json): Promise<Json> {
  const { status, body } = await post(`${url}/agenta/offers`, {
    protocol_version: "agenta.delegation.v0",
    message_type: "offer",
    seller_agent: { agent_id: AGENT, organization_id: ORGANIZATION },
    title: "Words, counted",
    description: "Counts the words of a text.",
    input_schema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    output_schema: { type: "object", properties: { words: { type: "integer" } }, required: ["words"] },
    pricing: { pricing_model: "usage_based", currency: "EUR", amount: 2, unit: "input_units" },
    service_levels: {
      target_completion_seconds: 5,
      max_completion_seconds: 600,
      supports_cancellation: true,
    },
    verification_policy: {
      mode: "third_party_verified",
      required_artifacts: ["result_payload"],
      pass_criteria: ["The number is that of the text's words."],
    },
    valid_from: "2026-01-01T00:00:00Z",
    ...change,
  });
  if (status !== 201) throw new Error(JSON.stringify(body));
  return body;
}

const words = await publish({ offer_id: "offer-words-1" });
const scarce = await publish({ offer_id: "offer-words-2", rate_limits: { max_concurrent_executions: 1 } });
say({ offers: [words, scarce] });

/**
 * Completes the work. The text `fail:REASON` fails it, and `sleep:` leaves it open. The texts `forge:`, `blur:` and
 * `omit:` make the delivery wrong.
 */
async function work(lease: Json, text: string): Promise<void> {
  const [order, what] = text.split(":");
  if (order === "sleep") return;
  if (order === "fail") {
    const failure = { reason: what, message: "the seller could not do it", retryable: false };
    await call(url, "tasks.v1.WorkerService/FailAssignment", { lease, failure });
    return;
  }
  const count = text.split(/\s+/).length;
  const payload = String(count);
  const digest = `sha256:${createHash("sha256")
    .update(order === "forge" ? "other" : payload)
    .digest("hex")}`;
  const artifact = { artifactType: "ARTIFACT_TYPE_RESULT_PAYLOAD", uri: `data:,${payload}`, digest };
  await call(url, "tasks.v1.WorkerService/CompleteAssignment", {
    lease,
    output: { full: { words: order === "blur" ? "many" : count } },
    delivery: { artifacts: order === "omit" ? [] : [artifact], usage: { inputUnits: count } },
  });
}

for (;;) {
  const request = { agentId: AGENT, worker: "one", capacity: 4, wait: "5s" };
  const { assignments = [] } = await call(url, "tasks.v1.WorkerService/TakeAssignments", request);
  for (const { lease, task } of assignments) {
    try {
      await call(url, "tasks.v1.WorkerService/StartAssignment", { lease });
      await work(lease, task.input.text);
    } catch (error) {
      // The lease is lost if the buyer cancelled meanwhile. Other errors are faults.
      if (!String(error).includes("LEASE_LOST")) throw error;
    }
  }
}
