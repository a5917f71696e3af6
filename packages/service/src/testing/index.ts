export { createGrpcJsTransport } from "@depute/grpc-js";
export { as, startTestHost, type TestHost, type TestHostOptions } from "./test-host.ts";
