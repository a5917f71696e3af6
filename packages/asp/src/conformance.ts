import { ConformanceLevel } from "@depute/contracts/asp/v0/common_pb";
import { Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { Refused } from "./refusal.ts";
import { isPrincipal, type Party, type Session } from "./session.ts";
import type { MessageBody } from "./subject.ts";
import type { Subject } from "./table.ts";

/** What the minimal level speaks. (ASP specification "Conformance") */
const MINIMAL: ReadonlySet<Performative> = new Set([
  Performative.INFORM,
  Performative.QUERY,
  Performative.CLOSE,
]);

/** How every session begins, whoever takes part: an agent of the minimal level could be in none otherwise. */
const BEGINNING: ReadonlySet<Subject> = new Set<Subject>(["invitation", "identity"]);

/** Whether an agent of a level speaks a performative; one whose card names no level speaks all. */
export function speaks(level: ConformanceLevel | undefined, performative: Performative): boolean {
  return level !== ConformanceLevel.MINIMAL || MINIMAL.has(performative);
}

/**
 * Holds agents to the level that their cards declare. Everybody hears every message, so what is said has to be spoken by
 * the sender and by both parties. Ratings are a part of trust scoring, which is the full level's. The rest is Depute's
 * choice, because the page says only what each level has.
 *
 * @throws Refused not_conformant
 */
export function requireConformance(
  { parties }: Session,
  sender: Party,
  performative: Performative,
  subject: Subject,
  body: MessageBody,
): void {
  if (BEGINNING.has(subject)) return;
  const mute = [sender, ...parties.filter(isPrincipal)].find(
    ({ conformance }) => !speaks(conformance, performative),
  );
  if (mute !== undefined) {
    throw new Refused(
      "not_conformant",
      `${mute.agentId} declares a level that does not have this performative`,
    );
  }
  const rates = body.case === "close" && (body.value.ratings?.values.length ?? 0) > 0;
  const { conformance = ConformanceLevel.FULL } = sender;
  if (rates && conformance !== ConformanceLevel.FULL) {
    throw new Refused("not_conformant", "ratings are of the full level");
  }
}
