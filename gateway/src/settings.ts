import { commonSettings, defineSettings } from "@depute/service";

const NEKTE = "Gateway: NEKTE";

/** The gateway's own settings. */
export const gatewaySettings = defineSettings({
  // Settings that every server has. The gateway needs two of them: agent cards contain `auth`, and the wires
  // wait for a request body for at most `bodyTimeout`.
  auth: commonSettings.auth,
  bodyTimeout: commonSettings.bodyTimeout,
  maxBodyBytes: {
    type: "int",
    default: 4_194_304,
    min: 1024,
    help: "maximum size of a request's body on the JSON wires, in bytes",
    group: "Limits",
  },
  nekteDefaultAgent: {
    type: "string",
    default: "",
    help: "agent that gets work at /nekte if the request names no agent; empty: such work is refused",
    group: NEKTE,
  },
  nekteInvokeTimeout: {
    type: "duration",
    default: "30s",
    help: "maximum duration of an invocation",
    group: NEKTE,
  },
  nekteHosts: {
    type: "list",
    default: [],
    help: "host names below which {agent}.NAME addresses one agent over gRPC, in addition to localhost and the public URL's host",
    group: NEKTE,
  },
  nektePorts: {
    type: "list",
    default: [],
    help: "ports that serve one agent's NEKTE over gRPC, each as agent=port",
    group: NEKTE,
  },
  nekteEpochMs: {
    type: "bool",
    default: false,
    help: "times of nekte.task.status as milliseconds since 1970 instead of ISO 8601, for clients that require numbers",
    group: NEKTE,
  },
  protosDir: {
    type: "string",
    default: "",
    help: "folder of the contracts' bundle, served at /protos; empty: where `npm run bundle` writes it",
    group: "Gateway: contracts",
  },
  mcpConfig: {
    type: "string",
    default: "",
    help: "JSON file of the MCP servers behind /mcp/{name}; empty: none",
    group: "Gateway: MCP",
  },
});
