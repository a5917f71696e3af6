export { createGrpcJsTransport } from "@depute/grpc-js";
