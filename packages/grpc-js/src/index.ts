export { createGrpcJsTransport } from "./transport.ts";
