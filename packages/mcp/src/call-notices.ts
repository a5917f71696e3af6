import type { JsonObject } from "@bufbuild/protobuf";
import { LOG_LEVEL_META_KEY, type LoggingLevel, type ServerContext } from "@modelcontextprotocol/server";

/** Progress of a call. (MCP, Progress) */
export interface CallProgress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

/** Sends messages about a running call to its client, before the result of the call. */
export interface CallNotices {
  /** Whether the client receives such messages. If not, the other members do nothing. */
  readonly areWanted: boolean;
  /** Sends progress if the client asked for it. Drops progress that is not greater than before, as MCP requires. */
  progress(progress: CallProgress): void;
  /** Sends a log message if its level is at least the level that the client set. */
  log(level: LoggingLevel, data: JsonObject): void;
}

/**
 * Returns the notices of a call.
 *
 * @param logger the name of the sender in log messages
 * @param hasSession whether the request belongs to an MCP session, which keeps the level of log messages. In revision
 * 2026-07-28 the request itself names the level; a request without a level receives no log messages.
 */
export function noticesOf(
  { mcpReq }: ServerContext,
  logger: string,
  hasSession: boolean,
  onError: (error: Error) => void,
): CallNotices {
  const progressToken = mcpReq._meta?.progressToken;
  const envelope: Readonly<Record<string, unknown>> | undefined = mcpReq.envelope;
  const takesLogs = envelope === undefined ? hasSession : envelope[LOG_LEVEL_META_KEY] !== undefined;
  let sent = Number.NEGATIVE_INFINITY;
  return {
    areWanted: progressToken !== undefined || takesLogs,
    progress(progress) {
      if (progressToken === undefined || progress.progress <= sent) return;
      sent = progress.progress;
      const params = { ...progress, progressToken };
      mcpReq.notify({ method: "notifications/progress", params }).catch(onError);
    },
    log(level, data) {
      if (takesLogs) mcpReq.log(level, data, logger).catch(onError);
    },
  };
}
