import type { JsonObject } from "@bufbuild/protobuf";
import { Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { rowFor, type Subject } from "../table.ts";
import { type Actor, identity, proposal } from "./stage.ts";

export type Verb = keyof typeof Performative;

/** One attempted message of a random session. */
export interface Attempt {
  readonly actorIndex: number;
  readonly verb: Verb;
  /** A number that selects one of the existing objects. */
  readonly pick: number;
  /** A number that selects a variant of the verb. */
  readonly variant: number;
}

interface ModelObject {
  readonly id: string;
  readonly kind: Subject;
  readonly side: number;
  readonly author: number;
  readonly target?: number;
  /** The object that a question refers to. */
  readonly about?: string;
  status: "open" | "accepted" | "reported" | "done";
  claimedBy?: number | undefined;
}

interface Member {
  side: number;
  delegate: boolean;
  full: boolean;
  presence: "invited" | "active" | "left";
  introduced: boolean;
  closed: boolean;
}

/** The body of an attempted message, and the message's subject. */
export interface Meaning {
  readonly body: JsonObject;
  readonly recipient?: string;
  readonly subject: Subject;
  readonly object?: ModelObject | undefined;
  /** Whether the message refers to an object that awaits an answer. */
  readonly isOpen: boolean;
  /** The number of the agent that a DELEGATE brings in. */
  readonly target?: number;
}

const { IDLE, CONVERSING, ESCALATED } = SessionState;

/** A minimal model of a session without hashes, time and limits: it follows only ASP's table of transitions. */
export class Model {
  state: SessionState = IDLE;
  #returnsTo: SessionState = CONVERSING;
  #accepted = false;
  #closing = false;
  #count = 0;
  readonly members = new Map<number, Member>();
  readonly objects: ModelObject[] = [];
  readonly #cast: readonly Actor[];

  constructor(cast: readonly Actor[]) {
    this.#cast = cast;
  }

  /** Converts an attempt to a message. The numbers in the attempt select from the model's current objects. */
  read({ actorIndex, verb, pick, variant }: Attempt): Meaning {
    const id = `o${this.#count++}`;
    const object = this.objects.length === 0 ? undefined : this.objects[pick % this.objects.length];
    const referenceId = object?.id ?? "nothing";
    const plain = (body: JsonObject, subject: Subject): Meaning => ({
      body: { ...body },
      subject,
      isOpen: true,
    });
    switch (verb) {
      case "PROPOSE":
        if (this.state === IDLE || variant % 5 === 0) {
          const recipient = this.#cast[actorIndex === 0 ? 1 : 0]?.agentId ?? "";
          return {
            ...plain({ proposalId: id, type: "session-invitation", subject: "s" }, "invitation"),
            recipient,
          };
        }
        return plain(proposal(id), "proposal");
      case "INFORM": {
        if (variant % 4 === 0) return plain(identity(this.#cast[actorIndex] as Actor), "identity");
        if (variant % 4 === 1) {
          const open = this.objects.find(({ kind, status }) => kind === "escalation" && status === "open");
          return { ...plain({ informType: "resolution" }, "resolution"), object: open };
        }
        return { ...plain({ informType: "result", references: [referenceId] }, "talk"), object };
      }
      case "OBSERVE":
        return plain({}, "talk");
      case "QUERY":
        return plain({ queryId: id }, "question");
      case "CLARIFY":
        return {
          body: { referenceId, questions: [{ question: "?" }] },
          subject: "question",
          isOpen: object?.status === "open" || object?.status === "accepted",
        };
      case "COMMIT":
        return plain(
          { commitmentId: id, escrow: { amount: 1, currency: "USD", releaseCondition: "c" } },
          "commitment",
        );
      case "DELEGATE": {
        const target = 2 + (variant % Math.max(1, this.#cast.length - 2));
        const targetAgent = (this.#cast[target] ?? this.#cast[0])?.agentId ?? "";
        const authority = variant % 2 === 0 ? "full" : "advisory";
        return { ...plain({ delegationId: id, targetAgent, scope: "s", authority }, "delegation"), target };
      }
      case "ESCALATE":
        return plain({}, "escalation");
      case "CLOSE":
        return plain({}, "session");
      default: {
        const isWithdrawal = verb === "WITHDRAW";
        const runs = object?.kind === "delegation" && object.status !== "done" && isWithdrawal;
        const isFulfilment = object?.kind === "commitment" && object.status === "accepted";
        return {
          body: { referenceId, ...(verb === "COUNTER" ? { proposalId: id } : {}) },
          subject: isFulfilment ? "fulfilment" : (object?.kind ?? "talk"),
          object,
          isOpen: object?.status === "open" || runs || isFulfilment,
        };
      }
    }
  }

  /** Whether ASP's table of transitions allows the attempt in the model's present state. */
  allows({ actorIndex, verb }: Attempt, { subject, object, isOpen, target }: Meaning): boolean {
    const row = rowFor(Performative[verb], subject);
    if (row === undefined || !row.moves.has(this.state) || !isOpen) return false;
    if (row.by.includes("newcomer")) return true;
    const member = this.members.get(actorIndex);
    if (member === undefined || member.presence === "left" || member.closed) return false;
    if (member.presence === "invited" && subject !== "invitation" && subject !== "delegation") return false;
    if (this.#closing && !row.whenClosing) return false;
    const faces = object !== undefined && object.side !== member.side;
    const can = {
      principal: !member.delegate,
      participant: true,
      addressee: !member.delegate && faces,
      deputy: member.full && faces,
      representative: member.full,
      author: object?.author === actorIndex,
      target: object?.target === actorIndex,
      newcomer: false,
    };
    if (!row.by.some((actor) => can[actor])) return false;
    if (subject === "identity") return this.#accepted && !member.introduced;
    if (subject === "fulfilment") return object?.claimedBy !== undefined && object.claimedBy !== member.side;
    if (verb === "DELEGATE" && target !== undefined) {
      const before = this.members.get(target);
      return target < this.#cast.length && (before === undefined || before.presence === "left");
    }
    return true;
  }

  /** Applies an allowed attempt. If the body states no id, `messageId` is the id of the new object. */
  apply({ actorIndex, verb }: Attempt, meaning: Meaning, messageId: string): void {
    const { subject, object, body, target } = meaning;
    const row = rowFor(Performative[verb], subject);
    const next = row?.moves.get(this.state) ?? "stay";
    const me = this.members.get(actorIndex) ?? this.#join(actorIndex, actorIndex, "active");
    const objectId = body.proposalId ?? body.queryId ?? body.commitmentId ?? body.delegationId ?? messageId;
    const open = (kind: Subject, more: Partial<ModelObject> = {}) =>
      this.objects.push({
        id: String(objectId),
        kind,
        side: me.side,
        author: actorIndex,
        status: "open",
        ...more,
      });
    if (verb === "ACCEPT" && object !== undefined) this.#accept(object, me);
    else if (verb === "REJECT" && object !== undefined && subject === "fulfilment")
      object.claimedBy = undefined;
    else if (["REJECT", "COUNTER", "WITHDRAW"].includes(verb) && object !== undefined) {
      object.status = "done";
      if (object.target !== undefined) this.#leave(object.target);
    }
    if (subject === "identity") me.introduced = true;
    if (subject === "resolution" && object !== undefined) object.status = "done";
    if (subject === "talk" && verb === "INFORM" && object !== undefined)
      this.#inform(object, actorIndex, me, body);
    if (verb === "PROPOSE" || verb === "COMMIT" || verb === "ESCALATE") open(subject);
    if (verb === "COUNTER") open(subject === "invitation" ? "invitation" : "proposal");
    if (verb === "QUERY") open("question");
    if (verb === "CLARIFY") open("question", { about: String(body.referenceId) });
    if (verb === "PROPOSE" && subject === "invitation")
      this.#join(actorIndex === 0 ? 1 : 0, actorIndex === 0 ? 1 : 0, "invited");
    if (verb === "DELEGATE" && target !== undefined) {
      Object.assign(this.#join(target, me.side, "invited"), {
        delegate: true,
        full: body.authority === "full",
      });
      open("delegation", { target });
    }
    if (verb === "CLOSE") {
      if (me.delegate) this.#leave(actorIndex);
      else this.#closing = true;
      me.closed = true;
    }
    this.#move(next, row?.both ?? false, verb);
  }

  #accept(object: ModelObject, me: Member): void {
    if (object.kind === "invitation") {
      this.#accepted = true;
      for (const member of this.members.values()) member.presence = "active";
    }
    if (object.kind === "delegation") me.presence = "active";
    object.status = object.claimedBy === undefined ? "accepted" : "done";
  }

  #inform(object: ModelObject, actorIndex: number, me: Member, { references }: JsonObject): void {
    const [referencedId] = references as [string];
    for (const question of this.objects) {
      const isMeant = question.id === referencedId || question.about === referencedId;
      if (question.kind === "question" && isMeant && question.author !== actorIndex) question.status = "done";
    }
    if (object.kind === "delegation" && object.status === "accepted" && object.target === actorIndex)
      object.status = "reported";
    // If the commitment states no obligations, the side that accepted it has to fulfil it: the side opposite to the
    // author.
    const owes = object.side !== me.side && (!me.delegate || me.full);
    if (object.kind === "commitment" && object.status === "accepted" && owes) object.claimedBy = me.side;
  }

  #move(next: SessionState | "stay" | "return", both: boolean, verb: Verb): void {
    if (next === "stay") return;
    const two = [...this.members.values()].filter(({ delegate }) => !delegate);
    if (both && !two.every((one) => (verb === "CLOSE" ? one.closed : one.introduced))) return;
    if (next === "return") this.state = this.#returnsTo;
    else {
      if (next === ESCALATED) this.#returnsTo = this.state;
      this.state = next;
    }
  }

  #join(actorIndex: number, side: number, presence: Member["presence"]): Member {
    const member = { side, delegate: false, full: false, presence, introduced: false, closed: false };
    this.members.set(actorIndex, member);
    return member;
  }

  #leave(actorIndex: number): void {
    const member = this.members.get(actorIndex);
    if (member !== undefined) member.presence = "left";
    for (const object of this.objects) {
      if (object.kind !== "delegation" || object.author !== actorIndex || object.status === "done") continue;
      object.status = "done";
      if (object.target !== undefined) this.#leave(object.target);
    }
  }
}
