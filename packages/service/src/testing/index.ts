export { createGrpcJsTransport } from "@depute/grpc-js";
export { collect, type Refusal, refusal } from "./refusal.ts";
export { as, startTestHost, type TestHost, type TestHostOptions } from "./test-host.ts";
