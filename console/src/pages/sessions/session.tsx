import { createClient } from "@connectrpc/connect";
import { useQuery, useTransport } from "@connectrpc/connect-query";
import { ParticipantRole } from "@depute/contracts/asp/v0/asp_common_pb";
import { type Session, SessionState } from "@depute/contracts/asp/v0/session_pb";
import type { TranscriptEntry } from "@depute/contracts/asp/v0/transcript_pb";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { useMemo, useRef, useState } from "react";
import { Card, Tag } from "../../parts/facts.tsx";
import { Liveness, NotShown, Opening } from "../../parts/states.tsx";
import { Id, Text } from "../../parts/text.tsx";
import { useFollow } from "../../rpc/follow.ts";
import { useSoon } from "../../rpc/soon.ts";
import { enumWord } from "../../rules/enum-word.ts";
import { hashOf } from "../../rules/route.ts";
import { hasSessionEnded, type SessionStep, sessionTone } from "../../rules/session-states.ts";
import { Messages } from "./messages.tsx";
import { StateDiagram } from "./state-diagram.tsx";
import { SessionTasks } from "./tasks.tsx";
import { VerifyInBrowser } from "./verify.tsx";

/** Maximum number of messages that the page keeps. If there are more, the page drops the oldest messages. */
const MAX_MESSAGES = 2_000;

/** New messages cause a new read of the session, at most once in this many milliseconds. */
const READ_MS = 200;

/** Shows one session, and updates with each message: its parties, its state, and its messages with their hashes. */
export function SessionPage({ id }: { readonly id: string }) {
  const query = useQuery(SessionService.method.getSession, { sessionId: id });
  const read = useSoon(() => void query.refetch(), READ_MS);
  const { entries, steps, connection } = useMessages(id, read);
  const session = query.data?.session;
  return (
    <>
      <nav aria-label="Path" className="crumbs">
        <a href={hashOf({ page: "sessions" })}>Sessions</a>
      </nav>
      {query.isPending && <Opening what="Session" />}
      {query.isError && session === undefined && <NotShown what="Session" error={query.error} />}
      {session !== undefined && (
        <>
          <div className="page-head">
            <h1>
              Session <Id value={id} max={40} />
            </h1>
            <Tag tone={sessionTone(session.state)}>{enumWord(SessionState, session.state)}</Tag>
            <Liveness connection={connection} />
          </div>
          <div className="stack">
            <StateDiagram state={session.state} steps={steps} />
            <div className="columns">
              <Card title="Messages" aside={<span className="quiet small-text">{session.messageCount}</span>}>
                <Messages entries={entries} />
              </Card>
              <div className="stack">
                <VerifyInBrowser sessionId={id} messageCount={session.messageCount} />
                <Parties session={session} />
                <SessionTasks sessionId={id} />
              </div>
            </div>
          </div>
        </>
      )}
    </>
  );
}

/**
 * Returns the newest MAX_MESSAGES messages of a session, and the session's state after each of them. Adds each new
 * message when it arrives.
 */
function useMessages(sessionId: string, onChange: () => void) {
  const transport = useTransport();
  const client = useMemo(() => createClient(SessionService, transport), [transport]);
  const [entries, setEntries] = useState<readonly TranscriptEntry[]>([]);
  const [steps, setSteps] = useState<readonly SessionStep[]>([]);
  const cursor = useRef(0n);
  const hasEnded = useRef(false);
  const connection = useFollow(sessionId, {
    open: (signal) =>
      client.watchSession({ sessionId, afterSequence: cursor.current, sendStart: true }, { signal }),
    take: ({ entry, sequence, state, session }) => {
      onChange();
      hasEnded.current = hasSessionEnded(state);
      // Only the first response of a stream contains the session. That response reports no message, so it adds no step
      // to the diagram.
      if (session !== undefined || (entry !== undefined && sequence <= cursor.current)) return false;
      const step = { state, ordinal: entry?.ordinal ?? 0, sender: entry?.envelope?.sender?.agentId ?? "" };
      setSteps((before) => [...before.slice(-MAX_MESSAGES + 1), step]);
      // If a response has no message, the session has ended at a deadline.
      if (entry === undefined) return true;
      cursor.current = sequence;
      setEntries((before) => [...before.slice(-MAX_MESSAGES + 1), entry]);
      return hasEnded.current;
    },
    isOver: () => hasEnded.current,
  });
  return { entries, steps, connection };
}

function Parties({ session }: { readonly session: Session }) {
  return (
    <Card title="Parties">
      <ul className="plain-list">
        {session.participants.map(({ agentId, role }) => (
          <li key={agentId} className="row wrap">
            <strong>
              <Text value={agentId} />
            </strong>
            <span className="quiet">{enumWord(ParticipantRole, role)}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
