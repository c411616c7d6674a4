/**
 * Agents (legacy, specification section 4.4). Only the account that registered an agent may change it; anyone can find
 * it.
 */
import { Type, type Static } from 'typebox';
import { searchWords } from '../../domain/search-words.ts';
import { row, sql, type Connection, type Database, type Transaction } from '../database.ts';
import { lockName } from '../named-lock.ts';

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
/** An agent's description by its owner. */
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

/** The most agents of one account. Limits the rows that it can write, and that every search ranks. */
export const AGENTS_MAX = 1_000;

const countRow = row(Type.Object({ count: Type.Integer(), isKnown: Type.Boolean() }));

/**
 * Registers an agent, or updates one that the account owns. `exists` when another account owns it. `too_many`
 * beyond what an account may have, exactly: its registrations wait for each other.
 */
export async function registerAgent(
  database: Database,
  accountId: string,
  agent: AgentFields,
): Promise<Agent | 'exists' | 'too_many'> {
  return database.transaction(async (tx) => {
    await lockName(tx, `farebox.agents ${accountId}`);
    const { count, isKnown } = await tx.one(sql.type(countRow)`
      select count(*) as count, coalesce(bool_or(id = ${agent.id}), false) as "isKnown"
      from farebox.agents where account_id = ${accountId}
    `);
    if (count >= AGENTS_MAX && !isKnown) return 'too_many';
    return (await write(tx, accountId, agent)) ?? 'exists';
  });
}

/** Null when another account owns it. */
async function write(
  tx: Transaction,
  accountId: string,
  agent: AgentFields,
): Promise<Agent | null> {
  const name = searchWords(agent.name);
  const offers = searchWords([...agent.intents, ...agent.capabilities].join('\n'));
  return tx.maybeOne(sql.type(agentRow)`
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
