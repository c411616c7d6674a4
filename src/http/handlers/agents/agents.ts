/** Agents and their discovery (legacy endpoints, specification section 4.4). */
import { intentOf, termsOf, type Intent } from '../../../domain/agent-search.ts';
import { ApiError } from '../../../domain/errors.ts';
import { endpointProblem } from '../../../egress/endpoints.ts';
import {
  TOP_K_DEFAULT,
  type AgentBody,
  type AgentReply,
  type IntentBody,
  type IntentReply,
  type ResolveBody,
  type ResolveReply,
} from '../../../schemas/agents.ts';
import { findOffers, findWordMatches, rankAgents } from '../../../store/agents/agent-search.ts';
import { AGENTS_MAX, registerAgent, type Agent } from '../../../store/agents/agents.ts';
import type { Database } from '../../../store/database.ts';
import type { Api } from '../../services.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { invalidField } from '../../invalid-field.ts';

export async function postAgent(
  api: Api,
  { caller, body }: Request<AgentBody>,
): Promise<Reply<AgentReply, 201>> {
  const problem = endpointProblem(body.endpoint, {
    allowPrivate: api.config.allowPrivateEndpoints,
  });
  if (problem) {
    throw invalidField('endpoint', `endpoint ${problem}`);
  }
  const agent = await registerAgent(api.database, caller.accountId, {
    ...body,
    description: body.description ?? '',
    capabilities: body.capabilities ?? [],
    intents: body.intents ?? [],
  });
  if (agent === 'exists') {
    throw new ApiError('agent_exists', 'Another account has registered this id.');
  }
  if (agent === 'too_many') {
    throw invalidField(
      'id',
      `An account has at most ${AGENTS_MAX} agents. To replace one, register this agent under its id.`,
    );
  }
  return { status: 201, body: wireAgent(agent) };
}

function wireAgent(agent: Agent): AgentReply {
  return {
    id: agent.id,
    name: agent.name,
    protocol: agent.protocol,
    endpoint: agent.endpoint,
    description: agent.description,
    capabilities: agent.capabilities,
    intents: agent.intents,
    createdAt: agent.createdAt,
  };
}

export async function postResolve(
  api: Api,
  { body }: Request<ResolveBody>,
): Promise<Reply<ResolveReply>> {
  const topK = body.topK ?? TOP_K_DEFAULT;
  const { agents, intent } = await search(api.database, body.query, topK);
  const results = agents.slice(0, topK).map(({ id, score, protocol }) => ({
    agentId: id,
    score: rounded(score),
    protocol,
  }));
  return { status: 200, body: { results, intent } };
}

export async function postIntentPreview(
  api: Api,
  { body }: Request<IntentBody>,
): Promise<Reply<IntentReply>> {
  const { intent } = await search(api.database, body.query, 0);
  return { status: 200, body: { intent } };
}

/** How many top-ranked agents contribute candidate intents. */
const INTENT_AGENTS = 20;

async function search(database: Database, query: string, topK: number) {
  const terms = termsOf(await findWordMatches(database, query));
  const agents = await rankAgents(database, terms, Math.max(topK, INTENT_AGENTS));
  const offering = agents.slice(0, INTENT_AGENTS).map(({ id }) => id);
  const { name, confidence } = intentOf(terms, await findOffers(database, offering));
  const intent: Intent = { name, confidence: rounded(confidence) };
  return { agents, intent };
}

/** More than four digits would suggest a precision that a score does not have. */
function rounded(share: number): number {
  return Math.round(share * 1e4) / 1e4;
}
