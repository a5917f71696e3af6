export { createGrpcJsTransport, type GrpcJsOptions } from "./transport.ts";
