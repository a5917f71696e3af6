import type { Column, Command } from "./command.ts";
import { arg, document, oneOf, text } from "./parameters.ts";

const CONTRACT_COLUMNS: readonly Column[] = [
  ["ID", "id"],
  ["METHOD", "verification.method", "enum:VERIFICATION_METHOD_"],
  ["CREATED", "createdAt"],
  ["DEADLINE", "constraints.deadline"],
  ["TITLE", "task.title"],
];
const contract = { item: "contract", columns: CONTRACT_COLUMNS, wide: [["ISSUER", "issuer"]] as const };
const CONTRACT = arg("CONTRACT", "contractId", "id of the contract");

const REVIEW_COLUMNS: readonly Column[] = [
  ["ID", "id"],
  ["STATE", "state", "enum:REVIEW_STATE_"],
  ["KIND", "kind", "enum:REVIEW_KIND_"],
  ["SUBJECT", "subject"],
  ["AGE", "createTime", "age"],
  ["TITLE", "title"],
];
const REVIEW_WIDE: readonly Column[] = [
  ["REVIEWERS", "reviewers", "list"],
  ["DEADLINE", "deadlineTime", "time"],
  ["DECIDED-BY", "decidedBy"],
  ["REASON", "reason"],
];
const review = { item: "review", columns: REVIEW_COLUMNS, wide: REVIEW_WIDE };
const REVIEW = arg("REVIEW", "reviewId", "id of the review");
const KIND = oneOf(
  "kind",
  "REVIEW_KIND_",
  ["human-review", "oversight", "start-approval", "grant"],
  "kind of review",
);

const WITNESSED_COLUMNS: readonly Column[] = [
  ["PLATFORM", "platform"],
  ["LOG-SIZE", "logHead.treeSize"],
  ["LOG-AGE", "logHeadTime", "age"],
  ["REVOCATIONS", "revocationCheckpoint.sequence"],
  ["REVOCATIONS-AGE", "revocationCheckpointTime", "age"],
];
const WITNESSED_WIDE: readonly Column[] = [
  ["LOG", "logHead.log"],
  ["ROOT", "revocationCheckpoint.signer"],
  ["ROOT-CHANGE", "revocationCheckpoint.rootChange"],
];
const witnessed = { item: "platform", columns: WITNESSED_COLUMNS, wide: WITNESSED_WIDE };
const WITNESSED = arg("PLATFORM", "platform", "principal of the platform");

export const VERIFIER: readonly Command[] = [
  {
    path: "contracts list",
    summary: "Lists contracts",
    remote: true,
    flags: { issuer: text("issuer", "contracts of this principal") },
    example: "depute contracts list",
    call: {
      service: "contracts",
      method: "listContracts",
      list: true,
      shown: { ...contract, item: "contracts" },
    },
  },
  {
    path: "contracts describe",
    summary: "Shows a contract",
    remote: true,
    args: [CONTRACT],
    example: "depute contracts describe $CONTRACT",
    notRun: "needs a contract",
    call: { service: "contracts", method: "getContract", describe: true, shown: contract },
  },
  {
    path: "contracts create",
    summary: "Has the platform sign and record a contract",
    remote: true,
    flags: document("contract", "members of delegateos.v0.TaskContract"),
    example: "depute contracts create --file @contract.json",
    notRun: "needs the named file",
    call: { service: "contracts", method: "signContract", shown: contract },
  },
  {
    path: "contracts verify",
    summary: "Checks the signature and the content of a recorded contract",
    remote: true,
    args: [CONTRACT],
    example: "depute contracts verify $CONTRACT",
    notRun: "needs a contract",
    call: {
      service: "contracts",
      method: "verifyContract",
      describe: true,
      shown: {
        item: "",
        columns: [
          ["VALID", "valid"],
          ["RECORDED", "recorded"],
          ["EXPIRED", "expired"],
        ],
      },
    },
  },
  {
    path: "reviews list",
    summary: "Lists reviews",
    remote: true,
    flags: {
      state: oneOf(
        "state",
        "REVIEW_STATE_",
        ["pending", "approved", "changes-requested", "rejected", "withdrawn", "timed-out"],
        "reviews in this state",
      ),
      kind: KIND,
      reviewer: text("reviewer", "reviews that this reviewer may decide"),
      subject: text("subject", "reviews of this subject"),
    },
    example: "depute reviews list --state pending",
    call: {
      service: "reviews",
      method: "listReviews",
      list: true,
      shown: { item: "reviews", columns: REVIEW_COLUMNS, wide: REVIEW_WIDE },
    },
  },
  {
    path: "reviews describe",
    summary: "Shows a review with the content to decide on",
    remote: true,
    args: [REVIEW],
    example: "depute reviews describe $REVIEW",
    call: { service: "reviews", method: "getReview", describe: true, shown: review },
  },
  {
    path: "reviews create",
    summary: "Asks reviewers for a decision",
    remote: true,
    flags: {
      kind: { ...KIND, default: "human-review" },
      subject: { ...text("subject", "what the review is about, e.g. the id of a task"), required: true },
      title: text("title", "a line for people"),
      content: { type: "json", field: "content", help: "content to decide on: JSON, @FILE, or -" },
      reviewer: {
        type: "string",
        field: "reviewers",
        repeated: true,
        required: true,
        help: "may decide; repeatable",
      },
      wait: { type: "duration", field: "timeout", help: "time until the review times out" },
    },
    example: "depute reviews create --subject release-7 --title 'Release 7' --reviewer local",
    call: { service: "reviews", method: "createReview", shown: review },
  },
  {
    path: "reviews decide",
    summary: "Decides a review",
    remote: true,
    args: [
      REVIEW,
      {
        name: "VERDICT",
        ...oneOf("verdict", "REVIEW_VERDICT_", ["approved", "changes-requested", "rejected"], "the decision"),
        required: true,
      },
    ],
    flags: {
      reason: text("reason", "why"),
      reviewer: text("reviewer", "decide as this reviewer"),
    },
    example: "depute reviews decide $REVIEW approved --reason 'checked by hand' --reviewer local",
    call: { service: "reviews", method: "decideReview", shown: review },
  },
  {
    path: "reviews withdraw",
    summary: "Withdraws a review that is pending",
    remote: true,
    args: [REVIEW],
    flags: { reason: text("reason", "why") },
    example: "depute reviews withdraw $REVIEW",
    notRun: "needs a review that is pending",
    call: { service: "reviews", method: "withdrawReview", shown: review },
  },
  {
    path: "log head",
    summary: "Shows the signed head of the transparency log",
    remote: true,
    example: "depute log head",
    call: {
      service: "log",
      method: "getLogHead",
      describe: true,
      shown: {
        item: "head",
        columns: [
          ["SIZE", "treeSize"],
          ["TIME", "headTime", "time"],
          ["ROOT", "rootHash"],
        ],
      },
    },
  },
  {
    path: "log list",
    summary: "Lists entries of the transparency log",
    remote: true,
    flags: { from: { type: "int", field: "firstIndex", help: "first index, from 0" } },
    example: "depute log list",
    call: {
      service: "log",
      method: "listLogEntries",
      list: true,
      shown: {
        item: "entries",
        columns: [
          ["INDEX", "index", "number"],
          ["KIND", "kind", "enum:LOG_ENTRY_KIND_"],
          ["TIME", "appendTime", "time"],
          ["DIGEST", "digest"],
        ],
      },
    },
  },
  {
    path: "log prove",
    summary: "Shows the proof that the log contains an entry",
    remote: true,
    args: [{ ...arg("INDEX", "index", "index of the entry"), type: "int" }],
    example: "depute log prove 0",
    notRun: "needs an entry of the log",
    call: {
      service: "log",
      method: "getInclusionProof",
      describe: true,
      shown: {
        item: "",
        columns: [
          ["INDEX", "entry.index"],
          ["SIZE", "treeSize"],
        ],
      },
    },
  },
  {
    path: "witness list",
    summary: "Lists the platforms whose logs' heads this platform keeps as their witness",
    details: "It needs the role auditor or operator.",
    remote: true,
    example: "depute witness list",
    call: {
      service: "witness",
      method: "listWitnessedPlatforms",
      list: true,
      shown: { ...witnessed, item: "platforms" },
    },
  },
  {
    path: "witness describe",
    summary: "Shows the heads of a platform's logs",
    remote: true,
    args: [WITNESSED],
    example: "depute witness describe platform-1 -o json",
    notRun: "needs a platform that publishes here",
    call: { service: "witness", method: "getWitnessedPlatform", describe: true, shown: witnessed },
  },
  {
    path: "witness delete",
    summary: "Deletes the record of a platform, which can then start with older data",
    details: "It needs the role operator.",
    remote: true,
    args: [WITNESSED],
    example: "depute witness delete platform-1",
    call: {
      service: "witness",
      method: "deleteWitnessedPlatform",
      shown: { item: "", columns: [["DELETED", "deleted"]] },
    },
  },
];
