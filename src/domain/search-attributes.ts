/**
 * The search attributes of our workflows: the filters for operators in the Temporal UI. None contains
 * personal data or text that a caller wrote. A Temporal server on an SQL database allows ten of type Keyword
 * per namespace.
 */

/** `Stuck` adds a filter that the UI lacks: running workflows with a step that keeps failing. */
export const SEARCH_ATTRIBUTES = {
  TopUpStatus: 'Keyword',
  ConsumerId: 'Keyword',
  DeveloperId: 'Keyword',
  AmountDollars: 'Double',
  WaitingFor: 'Keyword',
  Stuck: 'Bool',
  GrantStatus: 'Keyword',
  ApprovalStatus: 'Keyword',
  InvocationStatus: 'Keyword',
  AgentId: 'Keyword',
  AccountId: 'Keyword',
} as const;

export type SearchAttributeName = keyof typeof SEARCH_ATTRIBUTES;
