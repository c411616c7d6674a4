/**
 * The search attributes of our workflows: what an operator filters by in the Temporal UI. No personal data in
 * any. A Temporal server on an SQL database has room for ten of type Keyword in a namespace.
 */

/** `Stuck` is the filter that the UI does not have: running, but a step keeps failing. */
export const SEARCH_ATTRIBUTES = {
  TopUpStatus: 'Keyword',
  ConsumerId: 'Keyword',
  DeveloperId: 'Keyword',
  AmountDollars: 'Double',
  WaitingFor: 'Keyword',
  Stuck: 'Bool',
  GrantStatus: 'Keyword',
  InvocationStatus: 'Keyword',
  AgentId: 'Keyword',
  AccountId: 'Keyword',
  Capability: 'Keyword',
} as const;

export type SearchAttributeName = keyof typeof SEARCH_ATTRIBUTES;
