export { createGrpcJsTransport } from "@depute/grpc-js";
export { type EchoServer, type EchoServerOptions, startEchoServer } from "./echo-server.ts";
export { createIssuerKey, type IssuerKey, startTestIssuer, type TestIssuer } from "./issuer.ts";
export { type ReadWalk, walkReads } from "./read-walk.ts";
export { collect, type Refusal, refusal } from "./refusal.ts";
export { as, startTestHost, type TestHost, type TestHostOptions } from "./test-host.ts";
export { TickingClock } from "./ticking-clock.ts";
