// Calls a method of an empty request over gRPC with TLS: client.cjs ADDRESS CA CERTIFICATE KEY TOKEN METHOD.
// Prints the gRPC status and its message. An empty argument leaves the credential out.
const { readFileSync } = require("node:fs");
const grpc = require("@grpc/grpc-js");

const [address, ca, certificate, key, token, method] = process.argv.slice(2);
const read = (path) => (path === "" ? null : readFileSync(path));
const client = new grpc.Client(address, grpc.credentials.createSsl(read(ca), read(key), read(certificate)));
const metadata = new grpc.Metadata();
if (token !== "") metadata.set("authorization", `Bearer ${token}`);
const bytes = (value) => value;
const options = { deadline: Date.now() + 20_000 };
client.makeUnaryRequest(method, bytes, bytes, Buffer.alloc(0), metadata, options, (error) => {
  process.stdout.write(error === null ? "OK\n" : `${grpc.status[error.code]} ${error.details}\n`);
  client.close();
});
