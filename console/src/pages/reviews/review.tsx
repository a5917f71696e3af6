import { toJson } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { useQuery, useTransport } from "@connectrpc/connect-query";
import {
  VerificationMethod,
  type VerificationSpec,
  VerificationSpecSchema,
} from "@depute/contracts/delegateos/v0/verification_pb";
import { Role } from "@depute/contracts/depute/rpc/v1/method_options_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { ContractService } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import {
  type Review,
  ReviewService,
  ReviewState,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { type ReactNode, useMemo } from "react";
import { Card, Fact, Facts, Tag, Time } from "../../parts/facts.tsx";
import { Json, ValueView } from "../../parts/json.tsx";
import { Freshness, Loading, NotShown, Opening, Refused } from "../../parts/states.tsx";
import { Block, Id, Text } from "../../parts/text.tsx";
import { readPause, useWake } from "../../rpc/wake.ts";
import { enumWord } from "../../rules/enum-word.ts";
import { contentTitle, reviewKind, reviewState, subjectOf } from "../../rules/review-words.ts";
import { hashOf } from "../../rules/route.ts";
import { Decide } from "./decide.tsx";
import { LastVersion } from "./last-version.tsx";

/** While the stream of changes is not open, the page reads a pending review at this interval, in milliseconds. */
const READ_MS = 2_000;

/** Shows one review: its content, the contract if there is one, and the decision. */
export function ReviewPage({ id }: { readonly id: string }) {
  const transport = useTransport();
  const client = useMemo(() => createClient(ReviewService, transport), [transport]);
  const connection = useWake("reviews", (signal) => client.watchReviews({ sendStart: true }, { signal }));
  const query = useQuery(
    ReviewService.method.getReview,
    { reviewId: id },
    {
      refetchInterval: ({ state }) =>
        state.data?.review?.state === ReviewState.PENDING ? readPause(connection, READ_MS) : false,
    },
  );
  const review = query.data?.review;
  return (
    <>
      <nav aria-label="Path" className="crumbs">
        <a href={hashOf({ page: "reviews" })}>Reviews</a>
      </nav>
      {query.isPending && <Opening what="Review" />}
      {query.isError && review === undefined && <NotShown what="Review" error={query.error} />}
      {review !== undefined && (
        <ReviewView
          review={review}
          onDone={() => void query.refetch()}
          liveness={<Freshness query={query} />}
        />
      )}
    </>
  );
}

interface ReviewViewProps {
  readonly review: Review;
  readonly onDone: () => void;
  readonly liveness: ReactNode;
}

function ReviewView({ review, onDone, liveness }: ReviewViewProps) {
  const { label, tone } = reviewState(review.state);
  const { taskId, contractId } = subjectOf(review.kind, review.subject);
  const task = useQuery(TaskService.method.getTask, { taskId }, { enabled: taskId !== "", retry: false });
  const heading = contentTitle(review.kind);
  const contract = contractId || (task.data?.task?.contractId ?? "");
  return (
    <>
      <div className="page-head">
        <h1>
          <Text value={review.title || review.id} />
        </h1>
        <Tag tone={tone}>{label}</Tag>
        {liveness}
      </div>
      {review.state === ReviewState.PENDING && <Decide review={review} onDone={onDone} />}
      <div className="columns">
        <div className="stack">
          <Card title={heading}>
            {review.contentJson !== "" ? (
              <Block value={pretty(review.contentJson)} label={heading} />
            ) : (
              <ValueView value={review.content} label={heading} />
            )}
          </Card>
          <LastVersion review={review} />
        </div>
        <div className="stack">
          <ReviewFacts review={review} taskId={taskId} />
          {contract !== "" && <Contract id={contract} />}
          <Inquiries review={review} />
        </div>
      </div>
    </>
  );
}

function ReviewFacts({ review, taskId }: { readonly review: Review; readonly taskId: string }) {
  return (
    <Card title="Review">
      <Facts>
        <Fact name="Kind">{reviewKind(review.kind)}</Fact>
        <Fact name="Task">
          {taskId !== "" && <a href={hashOf({ page: "tasks", id: taskId })}>{taskId}</a>}
        </Fact>
        <Fact name="Subject">{taskId === "" && <Id value={review.subject} max={120} />}</Fact>
        <Fact name="Author">{review.author !== "" && <Text value={review.author} />}</Fact>
        <Fact name="Reviewers">
          {review.reviewers.length > 0 && <Text value={review.reviewers.join(", ")} />}
        </Fact>
        <Fact name="Roles that may decide">
          {review.reviewerRoles.length > 0 &&
            review.reviewerRoles.map((role) => enumWord(Role, role)).join(", ")}
        </Fact>
        <Fact name="Escalation to">
          {review.escalationReviewers.length > 0 && <Text value={review.escalationReviewers.join(", ")} />}
        </Fact>
        <Fact name="Escalates">{review.escalationTime && <Time value={review.escalationTime} />}</Fact>
        <Fact name="Created">
          <Time value={review.createTime} />
        </Fact>
        <Fact name="Deadline">{review.deadlineTime && <Time value={review.deadlineTime} />}</Fact>
        <Fact name="Decided by">{review.decidedBy !== "" && <Text value={review.decidedBy} />}</Fact>
        <Fact name="Decided">{review.decideTime && <Time value={review.decideTime} />}</Fact>
        <Fact name="Reason">{review.reason !== "" && <Text value={review.reason} />}</Fact>
        <Fact name="Content at">
          {review.contentReference && <Text value={review.contentReference.uri} />}
        </Fact>
      </Facts>
    </Card>
  );
}

function Contract({ id }: { readonly id: string }) {
  const query = useQuery(ContractService.method.getContract, { contractId: id }, { retry: false });
  const contract = query.data?.contract;
  return (
    <Card title="Contract">
      {query.isPending && <Loading what="the contract" />}
      {query.isError && <Refused error={query.error} />}
      {contract !== undefined && (
        <>
          <Facts>
            <Fact name="Title">
              <Text value={contract.task?.title ?? ""} />
            </Fact>
            <Fact name="Description">
              <Text value={contract.task?.description ?? ""} />
            </Fact>
            <Fact name="Issuer">
              <Id value={contract.issuer} max={44} />
            </Fact>
            <Fact name="Deadline">{contract.constraints?.deadline}</Fact>
          </Facts>
          <h3>Output schema</h3>
          <ValueView value={contract.task?.outputSchema} label="Output schema" />
          {contract.verification !== undefined && <Checks spec={contract.verification} />}
        </>
      )}
    </Card>
  );
}

function Checks({ spec }: { readonly spec: VerificationSpec }) {
  return (
    <>
      <h3>Checks: {enumWord(VerificationMethod, spec.method)}</h3>
      <details>
        <summary>Definition of the checks</summary>
        <Json value={toJson(VerificationSpecSchema, spec)} label="Checks" />
      </details>
    </>
  );
}

function Inquiries({ review }: { readonly review: Review }) {
  if (review.inquiries.length === 0) return null;
  return (
    <Card title="Questions">
      <ul className="plain-list">
        {review.inquiries.map(({ number, inquirer, text, answer }) => (
          <li key={number}>
            <strong>
              <Text value={inquirer} />
            </strong>
            : <Text value={text} />
            <p className="quiet">{answer === "" ? "Not answered yet" : <Text value={answer} />}</p>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
