import type { CommonSettings } from "@depute/service";

/** Whether this code runs from a clone of the repository. There the user can run npm's scripts. */
const IS_CLONE = import.meta.url.endsWith(".ts");

/**
 * Returns the text that the command prints when the platform is ready: the platform's address, and examples of calls.
 */
export function welcome(url: string, settings: CommonSettings): string {
  const access = settings.auth === "open" ? "open, loopback only" : "credentials required";
  return `
Depute is up at ${url} (${access}; data in ${settings.dataDir})

  console (in a browser)    ${url}/console
  gRPC, Connect, gRPC-Web   ${url}/depute.tasks.v1.TaskService/... (reflection is on)
  NEKTE                     ${url}/nekte, ${url}/nekte/{agent}
  MCP                       ${url}/mcp
  A2A                       ${url}/a2a/{agent}
  ASP                       ${url}/v1/asp/sessions
  CAP                       ${url}/cap/agents
  DelegateOS                ${url}/delegateos
  Agenta                    ${url}/protocols/agenta.delegation.v0/index.json
  health, metrics           ${url}/health, ${url}/metrics

Try, in a second shell:
  ${IS_CLONE ? "npm run demo" : "npx depute agents list"}
  npx buf curl --http2-prior-knowledge --protocol grpc ${url}/depute.registry.v1.AgentService/ListAgents
  curl ${url}/nekte -H 'content-type: application/json' \\
    -d '{"jsonrpc":"2.0","id":1,"method":"nekte.discover","params":{"level":0}}'

Ctrl-C drains and stops. Every setting: ${IS_CLONE ? "npm start --" : "npx depute start"} --help
`;
}
