import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import {
  type Review,
  ReviewService,
  ReviewVerdict,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { useMemo, useState } from "react";
import { Ask } from "../../parts/dialog.tsx";
import { Text } from "../../parts/text.tsx";
import { readCredentials } from "../../rpc/credentials.ts";
import { verdictEffects } from "../../rules/review-words.ts";
import { lineOf } from "../../rules/text.ts";

type Verdict = Exclude<keyof typeof ReviewVerdict, "UNSPECIFIED">;

const VERDICTS: Readonly<Record<Verdict, string>> = {
  APPROVED: "Approve",
  CHANGES_REQUESTED: "Request changes",
  REJECTED: "Reject",
};

interface DecideProps {
  readonly review: Review;
  readonly onDone: () => void;
}

/** Lets the caller decide a pending review. */
export function Decide({ review, onDone }: DecideProps) {
  const [askedVerdict, setAsked] = useState<Verdict>();
  const transport = useTransport();
  const client = useMemo(() => createClient(ReviewService, transport), [transport]);
  const isLocal = readCredentials().kind === "none";
  return (
    <div className="row wrap actions">
      {(Object.keys(VERDICTS) as Verdict[]).map((verdict) => (
        <button
          key={verdict}
          type="button"
          className={`button ${verdict === "APPROVED" ? "primary" : verdict === "REJECTED" ? "danger-quiet" : ""}`}
          onClick={() => setAsked(verdict)}
        >
          {VERDICTS[verdict]}
        </button>
      ))}
      {askedVerdict !== undefined && (
        <Ask
          title={VERDICTS[askedVerdict]}
          act={VERDICTS[askedVerdict]}
          isDangerous={askedVerdict === "REJECTED"}
          onClose={() => setAsked(undefined)}
          onAct={async (form) => {
            await client.decideReview({
              reviewId: review.id,
              verdict: ReviewVerdict[askedVerdict],
              reason: String(form.get("reason") ?? ""),
              reviewer: String(form.get("reviewer") ?? ""),
            });
            onDone();
          }}
        >
          <p>
            {verdictEffects(review.kind)[askedVerdict]} Subject: <Text value={review.title} />
          </p>
          {isLocal && <Reviewer review={review} />}
          <label className="field">
            Reason{askedVerdict === "APPROVED" ? " (optional)" : ""}
            <textarea name="reason" rows={4} maxLength={4000} required={askedVerdict !== "APPROVED"} />
          </label>
        </Ask>
      )}
    </div>
  );
}

/** Lets a user without credentials choose the reviewer in whose name the decision is made. */
function Reviewer({ review }: { readonly review: Review }) {
  const names = [...new Set([...review.reviewers, ...(review.escalated ? review.escalationReviewers : [])])];
  return (
    <label className="field">
      Decide as
      <select name="reviewer">
        {names.map((name) => (
          <option key={name} value={name}>
            {lineOf(name)}
          </option>
        ))}
      </select>
    </label>
  );
}
