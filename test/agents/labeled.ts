/** The labeled set: agents.txt and queries.txt beside this file, a line each, columns between bars. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentBody } from '../../src/schemas/agents.ts';

export interface LabeledQuery {
  /** Why the query is hard: typo, (word) form, (word) order, sentence, identifier; or plain. */
  readonly kind: string;
  readonly query: string;
  /** Ids of the agents that are right answers. */
  readonly right: readonly string[];
}

export function labeledAgents(): AgentBody[] {
  return linesOf('agents.txt').map(
    ([id = '', name = '', protocol = '', description = '', capabilities = '', intents = '']) => ({
      id,
      name,
      protocol,
      endpoint: `https://${id}.example.com/`,
      description,
      capabilities: capabilities.split(', '),
      intents: intents.split(', '),
    }),
  );
}

export function labeledQueries(): LabeledQuery[] {
  return linesOf('queries.txt').map(([kind = '', query = '', ids = '']) => ({
    kind,
    query,
    right: ids.split(', '),
  }));
}

function linesOf(file: string): string[][] {
  return readFileSync(join(import.meta.dirname, file), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split(' | '));
}
