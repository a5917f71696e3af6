import { toJson } from "@bufbuild/protobuf";
import { timestampMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { type Review, ReviewService } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { Differences } from "../../parts/differences.tsx";
import { Card } from "../../parts/facts.tsx";
import { Text } from "../../parts/text.tsx";

/**
 * Shows how a review's content differs from the previous review of the same subject, and the reason of the previous
 * review's decision. Shows nothing without a previous review.
 */
export function LastVersion({ review }: { readonly review: Review }) {
  const { kind, subject } = review;
  const list = useQuery(ReviewService.method.listReviews, { kind, subject, pageSize: 1_000 });
  const previous = (list.data?.reviews ?? []).filter((each) => msOf(each) < msOf(review)).at(-1);
  // A list has no contents.
  const query = useQuery(
    ReviewService.method.getReview,
    { reviewId: previous?.id ?? "" },
    { enabled: previous !== undefined },
  );
  const before = query.data?.review;
  if (before === undefined) return null;
  return (
    <Card title="Changes since the last version">
      {before.reason !== "" && (
        <p>
          Decision of that version: <Text value={before.reason} />
        </p>
      )}
      <Differences before={contentOf(before)} after={contentOf(review)} />
    </Card>
  );
}

function msOf({ createTime }: Review): number {
  return createTime === undefined ? 0 : timestampMs(createTime);
}

function contentOf({ content, contentJson }: Review): unknown {
  if (contentJson !== "") return JSON.parse(contentJson);
  return content === undefined ? null : toJson(ValueSchema, content);
}
