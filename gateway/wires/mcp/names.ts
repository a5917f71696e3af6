/**
 * The last segment of the path to which the published DelegateOS client sends its calls. No MCP server may have this
 * name.
 */
export const MESSAGE = "message";
