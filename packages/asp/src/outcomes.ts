import { isPrincipal, isTerminal, objectsOf, type Party, partyOf, type Session } from "./session.ts";

/** What came of a session for one agent, as another saw it. (ASP "Trust Implications") */
export interface Outcome {
  /** Whom it is about. */
  readonly agentId: string;
  /** Who saw it: trust is kept for each pair. */
  readonly counterpartId: string;
  readonly result: "completed" | "timed_out" | "fulfilled" | "breached" | "paid";
}

/**
 * What a session that has ended says of those who took part: between the two parties, and between a delegate that reported
 * and who brought it in. A session that was silent, rejected or withdrawn says nothing against anybody.
 */
export function outcomesOf(session: Session): Outcome[] {
  const { state, end, parties } = session;
  if (!isTerminal(state)) return [];
  const [first, second] = parties.filter(isPrincipal);
  if (first === undefined || second === undefined) return [];
  if (end === "invitation_timeout") {
    const late = parties.filter((party) => isPrincipal(party) && !party.introduced);
    // An invitation without an answer is the invited one's; later each has to introduce itself.
    const isUnanswered = second.presence === "invited";
    return (isUnanswered ? [second] : late).map((party) =>
      about(party, party === first ? second : first, "timed_out"),
    );
  }
  if (end !== "closed" && end !== "close_grace") return fulfilments(session, first, second);
  return [
    about(first, second, "completed"),
    about(second, first, "completed"),
    ...delegations(session),
    ...fulfilments(session, first, second),
  ];
}

function about(
  { agentId }: Pick<Party, "agentId">,
  counterpart: Pick<Party, "agentId">,
  result: Outcome["result"],
): Outcome {
  return { agentId, counterpartId: counterpart.agentId, result };
}

function delegations(session: Session): Outcome[] {
  return objectsOf(session, "delegation").flatMap(({ author, target, result }) =>
    result === undefined || target === undefined
      ? []
      : [
          about({ agentId: target }, { agentId: author }, "completed"),
          about({ agentId: author }, { agentId: target }, "completed"),
        ],
  );
}

/** One for each side, whatever its obligations: a breach outweighs what else was fulfilled. */
function fulfilments(session: Session, first: Party, second: Party): Outcome[] {
  const outcomes: Outcome[] = [];
  for (const { author, obligations = [], escrow } of objectsOf(session, "commitment")) {
    for (const [party, other] of [
      [first, second],
      [second, first],
    ] as const) {
      const own = obligations.filter(({ party: owes }) => partyOf(session, owes)?.side === party.side);
      const isContested = own.some(({ status }) => status === "refused" || status === "overdue");
      const isDone = own.length > 0 && own.every(({ status }) => status === "confirmed");
      if (isContested) outcomes.push(about(party, other, "breached"));
      // What was said to be done and never contested counts as done.
      else if (isDone || (escrow?.state === "forfeited" && author !== party.agentId)) {
        outcomes.push(about(party, other, "fulfilled"));
      }
      if (author === party.agentId && escrow?.state === "released")
        outcomes.push(about(party, other, "paid"));
    }
  }
  return outcomes;
}
