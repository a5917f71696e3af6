import { createClient } from "@connectrpc/connect";
import { useQuery, useTransport } from "@connectrpc/connect-query";
import {
  type LogEntry,
  LogEntryKind,
  type LogHead,
  LogService,
} from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { encodeBase64Url } from "@depute/core";
import { useEffect, useMemo, useState } from "react";
import { Card, Fact, Facts, Tag, Time } from "../parts/facts.tsx";
import { Empty, Freshness, Loading, Refused } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Id } from "../parts/text.tsx";
import { checkGrowth } from "../rpc/log-growth.ts";
import { enumWord } from "../rules/enum-word.ts";
import { addedGrowth, type GrowthCheck } from "../rules/log-growth.ts";
import { isHeadGenuine, isIncluded } from "../rules/log-proofs.ts";

/** Maximum number of entries that the page lists, the newest first. */
const MAX_ENTRIES = 1_000;

/** Shows the transparency log. This browser verifies the log's head and its proofs. */
export default function Log() {
  const query = useQuery(LogService.method.getLogHead, {}, { refetchInterval: 2_000 });
  const head = query.data?.head;
  return (
    <>
      <div className="page-head">
        <h1>Transparency log</h1>
        <Freshness query={query} />
      </div>
      {query.isPending && <Loading what="the log" />}
      {query.isError && <Refused error={query.error} />}
      {head !== undefined && (
        <div className="stack">
          <div className="columns even">
            <Head head={head} />
            <Growth head={head} />
          </div>
          {head.treeSize > 0n ? <Entries head={head} /> : <Empty title="The log is empty" />}
        </div>
      )}
    </>
  );
}

function Head({ head }: { readonly head: LogHead }) {
  const isGenuine = useMemo(() => isHeadGenuine(head), [head]);
  return (
    <Card
      title="Head"
      aside={
        <Tag tone={isGenuine ? "good" : "bad"}>{isGenuine ? "Signature verified" : "Signature is wrong"}</Tag>
      }
    >
      <Facts>
        <Fact name="Log">
          <Id value={head.log} max={44} />
        </Fact>
        <Fact name="Leaves">{head.treeSize.toLocaleString("en")}</Fact>
        <Fact name="Root hash">
          <Id value={encodeBase64Url(head.rootHash)} max={44} />
        </Fact>
        <Fact name="Signed">
          <Time value={head.headTime} />
        </Fact>
      </Facts>
    </Card>
  );
}

/**
 * Shows whether the log only grows. Each head must extend the head that this browser verified last, possibly on an
 * earlier visit.
 */
function Growth({ head }: { readonly head: LogHead }) {
  const transport = useTransport();
  const client = useMemo(() => createClient(LogService, transport), [transport]);
  const [checked, setChecked] = useState<GrowthCheck>({ proofs: 0, since: undefined, fault: undefined });
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    const leaving = new AbortController();
    checkGrowth(client, head, leaving.signal).then(
      (growth) => {
        if (leaving.signal.aborted) return;
        setError(undefined);
        setChecked((before) => addedGrowth(before, growth));
      },
      (thrown: unknown) => {
        if (!leaving.signal.aborted) setError(thrown);
      },
    );
    return () => leaving.abort();
  }, [client, head]);
  const { proofs, since, fault } = checked;
  return (
    <Card
      title="Growth"
      aside={
        <Tag tone={fault === undefined ? "good" : "bad"}>
          {fault === undefined ? "Only leaves were added" : "The log was rewritten"}
        </Tag>
      }
    >
      <p>
        Each new head is checked against the last one that this browser verified, with a consistency proof.
        Since this page is open, {proofs} proofs were verified.
      </p>
      <Facts>
        <Fact name="Verified since">
          {since !== undefined && (
            <>
              {since.treeSize.toLocaleString("en")} leaves, signed <Time value={since.headTime} />
            </>
          )}
        </Fact>
        <Fact name="Fault">{fault}</Fact>
      </Facts>
      {error !== undefined && <Refused error={error} />}
    </Card>
  );
}

function Entries({ head }: { readonly head: LogHead }) {
  const first = head.treeSize > BigInt(MAX_ENTRIES) ? head.treeSize - BigInt(MAX_ENTRIES) : 0n;
  const query = useQuery(
    LogService.method.listLogEntries,
    { firstIndex: first, pageSize: MAX_ENTRIES },
    { refetchInterval: 5_000 },
  );
  const rows = [...(query.data?.entries ?? [])].reverse();
  if (query.isPending) return <Loading what="entries" />;
  if (query.isError) return <Refused error={query.error} />;
  return <Table label="Entries" rows={rows} keyOf={({ index }) => String(index)} columns={COLUMNS} />;
}

const COLUMNS: readonly Column<LogEntry>[] = [
  { title: "Index", grow: 0.5, align: "end", cell: ({ index }) => String(index) },
  { title: "Kind", grow: 1.2, cell: ({ kind }) => enumWord(LogEntryKind, kind) },
  {
    title: "Digest",
    grow: 2,
    isWide: true,
    cell: ({ digest }) => <Id value={encodeBase64Url(digest)} max={43} />,
  },
  { title: "Appended", grow: 0.8, isWide: true, cell: ({ appendTime }) => <Time value={appendTime} /> },
  { title: "Inclusion", grow: 1.3, align: "end", cell: (entry) => <Inclusion entry={entry} /> },
];

/** At the user's request, verifies that the log includes an entry, and shows the result. */
function Inclusion({ entry }: { readonly entry: LogEntry }) {
  const [isAsked, setAsked] = useState(false);
  const query = useQuery(
    LogService.method.getInclusionProof,
    { subject: { case: "index", value: entry.index } },
    { enabled: isAsked, staleTime: Infinity },
  );
  if (!isAsked) {
    return (
      <button
        type="button"
        className="button small"
        aria-label={`Verify entry ${entry.index}`}
        onClick={() => setAsked(true)}
      >
        Verify
      </button>
    );
  }
  if (query.isError) return <Tag tone="bad">No proof</Tag>;
  if (query.data === undefined) return <span className="quiet">Reading</span>;
  const isProven = isIncluded(entry, query.data);
  return <Tag tone={isProven ? "good" : "bad"}>{isProven ? "Included" : "Not included"}</Tag>;
}
