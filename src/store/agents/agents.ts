/** Agents (legacy, specification section 4.4): who registered one may change it, anybody may find it. */
import { Type, type Static } from 'typebox';
import { searchWords } from '../../domain/search-words.ts';
import { row, sql, type Connection } from '../database.ts';

const Agent = Type.Object({
  id: Type.String(),
  accountId: Type.String(),
  name: Type.String(),
  protocol: Type.String(),
  endpoint: Type.String(),
  description: Type.String(),
  capabilities: Type.Array(Type.String()),
  intents: Type.Array(Type.String()),
  createdAt: Type.String(),
});
export type Agent = Static<typeof Agent>;
/** What its owner says of an agent. */
export type AgentFields = Omit<Agent, 'accountId' | 'createdAt'>;

const agentRow = row(Agent);

const agentColumns = sql.fragment`
  id, account_id as "accountId", name, protocol, endpoint, description, capabilities, intents,
  created_at as "createdAt"
`;

export async function findAgent(connection: Connection, agentId: string): Promise<Agent | null> {
  return connection.maybeOne(sql.type(agentRow)`
    select ${agentColumns} from farebox.agents where id = ${agentId}
  `);
}

/** Registers an agent, or changes it when it is the account's own. Null: it is another account's. */
export async function registerAgent(
  connection: Connection,
  accountId: string,
  agent: AgentFields,
): Promise<Agent | null> {
  const name = searchWords(agent.name);
  const offers = searchWords([...agent.intents, ...agent.capabilities].join('\n'));
  return connection.maybeOne(sql.type(agentRow)`
    insert into farebox.agents (id, account_id, name, protocol, endpoint, description, capabilities,
      intents, name_words, search)
    values (${agent.id}, ${accountId}, ${agent.name}, ${agent.protocol}, ${agent.endpoint},
      ${agent.description}, ${sql.array(agent.capabilities, 'text')},
      ${sql.array(agent.intents, 'text')}, ${name},
      setweight(to_tsvector('english', ${`${name} ${searchWords(agent.id)}`}), 'A') ||
      setweight(to_tsvector('english', ${offers}), 'B') ||
      setweight(to_tsvector('english', ${searchWords(agent.protocol)}), 'C') ||
      setweight(to_tsvector('english', ${searchWords(agent.description)}), 'D'))
    on conflict (id) do update set name = excluded.name, protocol = excluded.protocol,
      endpoint = excluded.endpoint, description = excluded.description,
      capabilities = excluded.capabilities, intents = excluded.intents,
      name_words = excluded.name_words, search = excluded.search, changed_at = now()
    where agents.account_id = excluded.account_id
    returning ${agentColumns}
  `);
}
