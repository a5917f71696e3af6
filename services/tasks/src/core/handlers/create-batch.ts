import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type CreateTaskRequest,
  type CreationOutcome,
  CreationOutcomeSchema,
  type TaskDraft,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { invalid } from "@depute/core";
import { resolveTarget, type Target } from "../creation/admission.ts";
import { type Caller, callOptions, type TasksContext } from "./context.ts";
import {
  type CheckedDraft,
  type Claim,
  type CreateOutcome,
  callerWithRight,
  checkedDraftOf,
  claimOf,
  createForCaller,
  orKnown,
  rightTo,
} from "./create.ts";
import { batchOutcome } from "./outcome.ts";

/**
 * Creates several tasks independently of each other.
 *
 * @returns the outcomes, in the order of the requests
 * @throws DeputeError the errors of {@link claimOf} and {@link callerWithRight}; INVALID_REQUEST for a request with
 * `wait`, or if the requests need different permissions of the caller's token; an error with the reason INTERNAL, after
 * every request was handled
 */
export async function createTasks(
  tasks: TasksContext,
  requests: readonly CreateTaskRequest[],
  context: HandlerContext,
): Promise<CreationOutcome[]> {
  const waiting = requests.findIndex(({ wait }) => wait !== undefined);
  if (waiting >= 0)
    throw invalid(
      `requests[${waiting}].wait`,
      "must be absent in a batch: use CreateTask or WaitTask to wait",
    );
  const options = callOptions(tasks, context);
  const claim = await claimOf(tasks, context);
  const targets = new Targets((draft) => resolveTarget(tasks.dependencies, draft, claim.principal, options));
  const aimed = await Promise.all(
    requests.map(async (request): Promise<Aimed> => {
      let checked: Aimed["checked"];
      try {
        checked = checkedDraftOf(request);
        return { checked, target: await targets.targetFor(checked.draft) };
      } catch (error) {
        return { checked, error };
      }
    }),
  );
  const { principal, caller } = await callerForAll(tasks, context, claim, aimed);
  const results = await Promise.allSettled(
    aimed.map(async ({ checked, target, error }): Promise<CreateOutcome> => {
      if (checked === undefined) throw error;
      if (target === undefined || caller === undefined) return orKnown(tasks, checked, principal, error);
      return createForCaller(tasks, checked, target, caller, options);
    }),
  );
  return results.map((result) => {
    const outcome = batchOutcome(result, ({ taskId }) => ({ case: "taskId", value: taskId }) as const);
    return create(CreationOutcomeSchema, { outcome });
  });
}

/** Finds the targets of a batch. Looks up each delegate only once. */
class Targets {
  readonly #resolve: (draft: TaskDraft) => Promise<Target>;
  readonly #targetByKey = new Map<string, Promise<Target>>();

  constructor(resolve: (draft: TaskDraft) => Promise<Target>) {
    this.#resolve = resolve;
  }

  targetFor(draft: TaskDraft): Promise<Target> {
    const { agentId, capabilityId, capabilityHash, contractId } = draft;
    const name = JSON.stringify([agentId, capabilityId, capabilityHash, contractId]);
    const target = this.#targetByKey.get(name) ?? this.#resolve(draft);
    this.#targetByKey.set(name, target);
    return target;
  }
}

/**
 * A draft with its target, or with the error that refused it. `checked` is undefined for a draft that `checkedDraftOf`
 * refused.
 */
interface Aimed {
  readonly checked: CheckedDraft | undefined;
  readonly target?: Target;
  readonly error?: unknown;
}

/**
 * Requires that the caller's token grants the permission that all targets need. If no target was found, verifies only
 * the caller's identity.
 */
async function callerForAll(
  tasks: TasksContext,
  context: HandlerContext,
  claim: Claim,
  aimed: readonly Aimed[],
): Promise<{ principal: string; caller?: Caller }> {
  const targets = aimed.flatMap(({ target }) => target ?? []);
  const [first] = targets;
  if (first === undefined) return { principal: await claim.prove() };
  if (claim.identity === undefined) {
    const rights = new Set(targets.map((target) => JSON.stringify(rightTo(target))));
    if (rights.size > 1) {
      // The refusal below discloses facts about the targets, so the caller must first prove its identity.
      await claim.prove();
      throw invalid(
        "requests",
        "must all name one capability of one agent and one contract, because the caller has a token",
      );
    }
  }
  const caller = await callerWithRight(tasks, context, claim, first);
  return { principal: caller.principal, caller };
}
