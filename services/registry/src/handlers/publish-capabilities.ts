import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  AgentChangeKind,
  type PublishCapabilitiesRequest,
  PublishCapabilitiesRequestSchema,
  type PublishCapabilitiesResponse,
  PublishCapabilitiesResponseSchema,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { bytesOf, MAX_ANSWER_BYTES, ownOptions } from "@depute/service";
import { announce, findOwn, identify, type RegistryContext } from "../context.ts";
import { repeatable } from "../idempotency.ts";
import { withHash } from "../rules/levels.ts";
import { readPublication } from "../rules/publication.ts";
import { searchKeys } from "../rules/registration.ts";
import { schemasToCheck } from "../rules/schema-checks.ts";
import { putState } from "../store/agents.ts";
import { publishedBy, replaceCapabilities } from "../store/capabilities.ts";

/** Bytes that an answer has beside what was sent: version hashes. */
const ROOM_FOR_HASHES = 32 * 1024;

const SCHEMAS = { request: PublishCapabilitiesRequestSchema, answer: PublishCapabilitiesResponseSchema };

/**
 * AgentService.PublishCapabilities.
 *
 * The verifier is asked between two transactions, since no transaction waits for another service; the second one looks
 * again at everything that may have changed.
 */
export async function publishCapabilities(
  registry: RegistryContext,
  request: PublishCapabilitiesRequest,
  context: HandlerContext,
): Promise<PublishCapabilitiesResponse> {
  const identity = await identify(registry, context);
  const { agentId } = request;
  const call = repeatable(SCHEMAS, identity.principal, request.requestId, request);
  const before = await registry.store.read(async (tx) => {
    const answered = await call.before(tx);
    if (answered !== undefined) return { answered };
    await findOwn(tx, identity, agentId, "agent_id");
    return { published: await publishedBy(tx, agentId) };
  });
  if (before.answered !== undefined) return before.answered;
  checkSize(request);

  const capabilities = readPublication(request.capabilities, sha256Hex);
  const schemas = schemasToCheck(capabilities, before.published);
  await registry.schemas.check(schemas, ownOptions(context, registry.clock));

  return registry.store.write(async (tx) => {
    const answered = await call.before(tx);
    if (answered !== undefined) return answered;
    const agent = await findOwn(tx, identity, agentId, "agent_id");
    const now = registry.clock.now();
    await replaceCapabilities(tx, agentId, capabilities, searchKeys(agent.record));
    const capabilityIds = capabilities.map(({ message }) => message.id);
    await putState(tx, registry, { ...agent, capabilityIds, updateTime: now });
    const answer = create(PublishCapabilitiesResponseSchema, {
      capabilities: capabilities.map(({ message, digest }) => withHash(message, digest, registry.hashLength)),
    });
    await call.keep(tx, answer, now);
    await announce(registry, tx, AgentChangeKind.CAPABILITIES, agent.record);
    return answer;
  });
}

/** What is published is answered, in one piece. @throws DeputeError LIMIT_EXCEEDED */
function checkSize(request: PublishCapabilitiesRequest): void {
  const max = MAX_ANSWER_BYTES - ROOM_FOR_HASHES;
  if (bytesOf(PublishCapabilitiesRequestSchema, request) <= max) return;
  throw new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    `the capabilities of an agent have at most ${max} bytes together`,
    { metadata: { limit: "capabilities.bytes", max: String(max) } },
  );
}
