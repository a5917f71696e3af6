import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type CreateTaskRequest,
  type CreationOutcome,
  CreationOutcomeSchema,
  type TaskDraft,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { invalid } from "@depute/core";
import type { Caller } from "../caller.ts";
import { resolveTarget, type Target } from "../creation/admission.ts";
import { type Claim, claimOf } from "./claim-of-caller.ts";
import { callOptions, type TasksContext } from "./context.ts";
import {
  callerWithRight,
  type HandedOver,
  handOverTo,
  orKnown,
  type Piece,
  pieceOf,
  rightTo,
} from "./create.ts";
import { outcomeOf } from "./outcome.ts";

/**
 * Hands over several pieces of work, each by itself.
 *
 * @returns what has become of them, in the order of the requests
 * @throws DeputeError TOKEN_DENIED, INVALID_REQUEST; what is a fault of the platform's and no refusal, once all are stored
 */
export async function createTasks(
  tasks: TasksContext,
  requests: readonly CreateTaskRequest[],
  context: HandlerContext,
): Promise<CreationOutcome[]> {
  const waiting = requests.findIndex(({ wait }) => wait !== undefined);
  if (waiting >= 0)
    throw invalid(`requests[${waiting}].wait`, "is for a call that hands over one piece of work");
  const options = callOptions(tasks, context);
  const claim = await claimOf(tasks, context);
  const targets = new Targets((draft) => resolveTarget(tasks.dependencies, draft, claim.principal, options));
  const aimed = await Promise.all(
    requests.map(async (request): Promise<Aimed> => {
      let piece: Aimed["piece"];
      try {
        piece = pieceOf(request);
        return { piece, target: await targets.of(piece.draft) };
      } catch (error) {
        return { piece, error };
      }
    }),
  );
  const { principal, caller } = await callerForAll(tasks, context, claim, aimed);
  const done = await Promise.allSettled(
    aimed.map(async ({ piece, target, error }): Promise<HandedOver> => {
      if (piece === undefined) throw error;
      if (target === undefined || caller === undefined) return orKnown(tasks, piece, principal, error);
      return handOverTo(tasks, piece, target, caller, options);
    }),
  );
  return done.map((result) => {
    const outcome = outcomeOf(result, ({ taskId }) => ({ case: "taskId", value: taskId }) as const);
    return create(CreationOutcomeSchema, { outcome });
  });
}

/** Much of what is handed over at once is for the same delegate, which is looked up once then. */
class Targets {
  readonly #resolve: (draft: TaskDraft) => Promise<Target>;
  readonly #found = new Map<string, Promise<Target>>();

  constructor(resolve: (draft: TaskDraft) => Promise<Target>) {
    this.#resolve = resolve;
  }

  of(draft: TaskDraft): Promise<Target> {
    const { agentId, capabilityId, capabilityHash, contractId } = draft;
    const name = JSON.stringify([agentId, capabilityId, capabilityHash, contractId]);
    const target = this.#found.get(name) ?? this.#resolve(draft);
    this.#found.set(name, target);
    return target;
  }
}

/** A piece of work and its target, or why it has none; without a piece, the draft itself is unsound. */
interface Aimed {
  readonly piece: Piece | undefined;
  readonly target?: Target;
  readonly error?: unknown;
}

/** The caller with the right that all targets need; its principal alone where there is no target. */
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
      // Even that there is more than one target is not for everybody to know.
      await claim.prove();
      throw invalid(
        "requests",
        "are not all for one capability of one agent and one contract, under a token",
      );
    }
  }
  const caller = await callerWithRight(tasks, context, claim, first);
  return { principal: caller.principal, caller };
}
