import { create, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import * as grpc from "@grpc/grpc-js";
import { Ajv } from "ajv";
import { reportCpu } from "../rate-of-cpu.ts";
import { ITEMS } from "./client.ts";

/**
 * Runs the reference in a separate process: a bare @grpc/grpc-js server whose CheckOutput parses the output and passes
 * it to a function that Ajv has compiled before. It checks no credentials, knows one schema, and has no limits of time
 * and size. The process reports its port.
 */

type Request = MessageShape<typeof VerificationService.method.checkOutput.input>;
type Response = MessageShape<typeof VerificationService.method.checkOutput.output>;

const fits = new Ajv({ strict: false }).compile(ITEMS);
const { input, output, name } = VerificationService.method.checkOutput;
const server = new grpc.Server();
server.addService(
  {
    check: {
      path: `/${VerificationService.typeName}/${name}`,
      requestStream: false,
      responseStream: false,
      requestDeserialize: (bytes: Buffer) => fromBinary(input, bytes),
      requestSerialize: (message: Request) => Buffer.from(toBinary(input, message)),
      responseDeserialize: (bytes: Buffer) => fromBinary(output, bytes),
      responseSerialize: (message: Response) => Buffer.from(toBinary(output, message)),
    },
  },
  {
    check(call: { request: Request }, callback: grpc.sendUnaryData<unknown>) {
      const passed = fits(JSON.parse(call.request.outputJson));
      callback(null, create(output, { result: { passed } }));
    },
  },
);
reportCpu();
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  process.send?.({ url: `http://127.0.0.1:${port}` });
});
