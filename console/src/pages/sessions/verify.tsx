import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Card, Fact, Facts, Tag } from "../../parts/facts.tsx";
import { Loading, Refused } from "../../parts/states.tsx";
import { Text } from "../../parts/text.tsx";

/** Verifies the transcript in this browser, message by message, with the same packages as the platform. */
export function VerifyInBrowser({
  sessionId,
  messageCount,
}: {
  readonly sessionId: string;
  readonly messageCount: number;
}) {
  const transport = useTransport();
  const client = useMemo(() => createClient(SessionService, transport), [transport]);
  const query = useQuery({
    queryKey: ["transcript", sessionId, messageCount],
    refetchOnWindowFocus: false,
    staleTime: Infinity,
    queryFn: async ({ signal }) => {
      const [{ transcript }, { keys }, { checkTranscript }] = await Promise.all([
        client.exportTranscript({ sessionId }, { signal }),
        client.getTranscriptKeys({}, { signal }),
        import("../../rpc/check-transcript.ts"),
      ]);
      if (transcript === undefined) throw new Error("the platform exported no transcript");
      return checkTranscript(transcript, keys);
    },
  });
  return (
    <Card title="Verified in this browser">
      {query.isPending && <Loading what="the transcript" />}
      {query.isError && <Refused error={query.error} />}
      {query.data !== undefined && (
        <>
          <p role="status">
            <Tag tone={query.data.isValid ? "good" : "bad"}>{query.data.isValid ? "Valid" : "Not valid"}</Tag>
          </p>
          <Facts>
            <Fact name="Messages">{query.data.messages}</Fact>
            <Fact name="Seal">{query.data.seal}</Fact>
            <Fact name="Fault">{query.data.fault !== "" && <Text value={query.data.fault} />}</Fact>
          </Facts>
          <p className="quiet small-text">
            Hashes, signatures, sequence numbers, roles, states and the platform's seal.
          </p>
        </>
      )}
    </Card>
  );
}
