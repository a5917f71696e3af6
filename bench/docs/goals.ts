/** A goal of the page, and the figure that shows whether it is met. */
export interface PageGoal {
  readonly text: string;
  readonly suite: string;
  readonly benchmark: string;
  /** The name of the figure. */
  readonly figure: string;
  readonly atMost?: number;
  readonly atLeast?: number;
}

/** The numbers of attenuations of the measured tokens. */
const LINKS = [0, 2, 5];

const cold = (links: number) => `verify cold, ${links} attenuations, against peers`;

const MCP = "what the proxy adds to a call over stdio, p50, data in memory";

export const GOALS: readonly PageGoal[] = [
  ...LINKS.map((links) => ({
    text: `A token with ${links} attenuations is verified cold in 1/4.5 of biscuit-wasm's time`,
    suite: "dct",
    benchmark: cold(links),
    figure: "biscuit-wasm's time, by Depute's",
    atLeast: 4.5,
  })),
  ...LINKS.map((links) => ({
    text: `A token with ${links} attenuations is verified cold in 1.3 times the time of its signatures alone`,
    suite: "dct",
    benchmark: cold(links),
    figure: "Depute's time, by raw signatures",
    atMost: 1.3,
  })),
  ...LINKS.map((links) => ({
    text: `A token with ${links} attenuations that was verified before takes 1/25 of biscuit-wasm's time from its text`,
    suite: "dct",
    benchmark: `verify warm, ${links} attenuations, against peers`,
    figure: "biscuit-wasm's time from the text, by Depute's",
    atLeast: 25,
  })),
  {
    text: "A unary gRPC call of a caller known by credential costs no more than grpc-js' bare echo",
    suite: "rpc",
    benchmark: "an empty unary call, gRPC, with a credential",
    figure: "Depute, fast path, caller known by credential: times @grpc/grpc-js",
    atLeast: 1,
  },
  {
    text: "A unary gRPC call without credential costs at most 1/1.3 of grpc-js' bare echo",
    suite: "rpc",
    benchmark: "an empty unary call, gRPC",
    figure: "Depute, fast path: times @grpc/grpc-js",
    atLeast: 1.3,
  },
  {
    text: "Tasks from creation to completion, durable, are as many as messages of the A2A SDK in memory",
    suite: "tasks",
    benchmark: "create to complete, 32 in flight",
    figure: "one by one, by the A2A SDK",
    atLeast: 1,
  },
  {
    text: "The SDK's worker completes at least 0.8 of the tasks that a bare client completes",
    suite: "tasks",
    benchmark: "create to complete, 32 in flight",
    figure: "by the SDK's worker, by the bare client",
    atLeast: 0.8,
  },
  {
    text: "An event at 1,000 a second takes twice the p99 of a bare stream and one flushed append",
    suite: "tasks",
    benchmark: "from worker to watcher, p99, 1000 events a second of 4 tasks",
    figure: "Depute, by both",
    atMost: 2,
  },
  {
    text: "Tasks on Postgres, one a call, are half as many as pg-boss' jobs",
    suite: "queue",
    benchmark: "create to complete on one Postgres, one job a call, 32 in flight",
    figure: "Depute, by pg-boss",
    atLeast: 0.5,
  },
  {
    text: "Discovery by free text takes at most twice as long among 100,000 agents as among 1,000",
    suite: "growth",
    benchmark: "agents",
    figure: "search by two words: 100,000 by 1,000",
    atMost: 2,
  },
  {
    text: "The same within a category",
    suite: "growth",
    benchmark: "agents",
    figure: "by two words in a category: 100,000 by 1,000",
    atMost: 2,
  },
  {
    text: "Three replicas take at most a quarter more CPU for a task than one, at an equal rate",
    suite: "replicas",
    benchmark: "create to complete, at an equal rate below the limit",
    figure: "CPU of 3 replicas against 1",
    atMost: 125,
  },
  {
    text: "The p99 of an event at another replica is at most 15 ms above that at the same replica",
    suite: "replicas",
    benchmark: "from worker to watcher, p99, 200 events a second of 4 tasks, 2 replicas",
    figure: "the difference",
    atMost: 15,
  },
  {
    text: "One replica completes on Postgres at least 0.6 of the tasks that it completes on SQLite",
    suite: "replicas",
    benchmark: "create to complete, one task a call, 48 in flight, flushed",
    figure: "Postgres, by SQLite",
    atLeast: 0.6,
  },
  ...[
    ["for a server that announces changes of its tools", ", a server that announces changes"],
    ["for a server whose list of tools has a ttl", ", within the ttl"],
    ["in a holder session, for a server whose list has a ttl", " in a holder session, within the ttl"],
  ].map(([text, figure]) => ({
    text: `To verify a token, the MCP proxy adds at most half of a bare call over stdio, ${text}`,
    suite: "mcp",
    benchmark: MCP,
    figure: `added, token verified${figure}`,
    atMost: 0.5,
  })),
  {
    text: "To verify a token and reserve its budget, the MCP proxy adds at most one bare call over stdio",
    suite: "mcp",
    benchmark: MCP,
    figure: "added, and its budget reserved, within the ttl",
    atMost: 1,
  },
];
