import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { type Revocation, RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { useMemo, useRef, useState } from "react";
import { Tag, Time } from "../../parts/facts.tsx";
import { Empty, Liveness } from "../../parts/states.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Id } from "../../parts/text.tsx";
import { useFollow } from "../../rpc/follow.ts";

/** Maximum number of revocations that the page keeps. */
const MAX_ROWS = 20_000;

const COLUMNS: readonly Column<Revocation>[] = [
  { title: "Number", grow: 0.5, align: "end", cell: ({ sequence }) => String(sequence) },
  {
    title: "Revoked",
    grow: 1.6,
    cell: ({ entry, key }) => <Id value={entry?.revocationId ?? key?.key ?? ""} max={24} />,
  },
  {
    title: "Kind",
    grow: 0.8,
    cell: ({ key }) => <Tag tone="bad">{key === undefined ? "Token" : "Key"}</Tag>,
  },
  {
    title: "By",
    grow: 1.4,
    isWide: true,
    cell: ({ entry, key }) => <Id value={entry?.revokedBy ?? key?.revokedBy ?? ""} max={24} />,
  },
  { title: "Head of the log", grow: 1.4, isWide: true, cell: ({ head }) => <Id value={head} max={20} /> },
  { title: "Recorded", grow: 1, align: "end", cell: ({ recordTime }) => <Time value={recordTime} /> },
];

/** Lists all revocations, newest first, and adds each new revocation when it is recorded. */
export function RevocationLog() {
  const transport = useTransport();
  const client = useMemo(() => createClient(RevocationService, transport), [transport]);
  const [rows, setRows] = useState<readonly Revocation[]>([]);
  const cursor = useRef(0n);
  const connection = useFollow("revocations", {
    open: (signal) => client.watchRevocations({ afterSequence: cursor.current, sendStart: true }, { signal }),
    take: ({ revocation }) => {
      if (revocation === undefined || revocation.sequence <= cursor.current) return false;
      cursor.current = revocation.sequence;
      setRows((before) => [revocation, ...before].slice(0, MAX_ROWS));
      return false;
    },
  });
  return (
    <div className="stack">
      <Liveness connection={connection} />
      {rows.length === 0 ? (
        <Empty title="No revocations" />
      ) : (
        <Table label="Revocations" rows={rows} keyOf={({ sequence }) => String(sequence)} columns={COLUMNS} />
      )}
    </div>
  );
}
