/** The protocols by which an agent can be called. Agents of other protocols can be registered and found. */
export const AGENT_PROTOCOLS = ['http', 'mcp', 'a2a'] as const;

export type AgentProtocol = (typeof AGENT_PROTOCOLS)[number];

/** As it was registered, in letters of either case. Undefined: its agents cannot be called. */
export function callableProtocol(registered: string): AgentProtocol | undefined {
  const name = registered.toLowerCase();
  return AGENT_PROTOCOLS.find((protocol) => protocol === name);
}
