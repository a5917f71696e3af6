export { createGrpcJsTransport } from "./grpc-js-transport.ts";
