import everything from "../maps/everything.json" with { type: "json" };
import fetch from "../maps/fetch.json" with { type: "json" };
import filesystem from "../maps/filesystem.json" with { type: "json" };
import git from "../maps/git.json" with { type: "json" };
import memory from "../maps/memory.json" with { type: "json" };
import sequentialThinking from "../maps/sequential-thinking.json" with { type: "json" };
import time from "../maps/time.json" with { type: "json" };

/** Tool maps for common servers. Configuration refers to them by name in `maps`. */
export const SHIPPED_MAPS: ReadonlyMap<string, unknown> = new Map(
  Object.entries({
    everything,
    fetch,
    filesystem,
    git,
    memory,
    "sequential-thinking": sequentialThinking,
    time,
  }),
);
