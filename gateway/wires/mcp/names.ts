/**
 * The last path segment of the address that the published DelegateOS client calls. No MCP server may have
 * this name.
 */
export const MESSAGE = "message";
