/**
 * A competent hand-written server: Fastify with schemas for body and answer, a `pg` pool, keys cached by hash, and one
 * prepared statement that debits the consumer and inserts the charge. It omits Farebox's other features (idempotency
 * keys, tools, revocation within a second, batches).
 */
import { createHash, createHmac } from 'node:crypto';
import Fastify from 'fastify';
import { LRUCache } from 'lru-cache';
import { Pool } from 'pg';

interface Body {
  readonly apiKey: string;
  readonly tool: string;
  readonly amount: number;
}

interface Owner {
  readonly ledger: number;
  readonly consumer_id: string;
  readonly developer_id: string;
  readonly developer_number: number;
}

/** Slightly the best of 8, 16 and 32 on two cores, tried in turn. */
const CONNECTIONS = 16;
const RECEIPT_SECRET = process.env['MASTER_SECRET'] ?? '';

const pool = new Pool({
  connectionString: process.env['DATABASE_URL'],
  max: CONNECTIONS,
  min: CONNECTIONS,
});
const owners = new LRUCache<string, Owner>({ max: 50_000, ttl: 60_000 });

async function findOwner(key: string, kind: 'consumer' | 'developer'): Promise<Owner | undefined> {
  const hash = createHash('sha256').update(key).digest('hex');
  const cached = owners.get(hash);
  if (cached) return cached;
  const { rows } = await pool.query<Owner>({
    name: 'owner',
    text: `select a.ledger, a.consumer_id, a.developer_id, a.developer_number
      from farebox.api_keys k
      join farebox.accounts a on a.id = k.account_id
      where k.hash = decode($1, 'hex') and k.kind = $2 and k.revoked_at is null
        and (k.expires_at is null or k.expires_at > now())`,
    values: [hash, kind],
  });
  if (rows[0]) owners.set(hash, rows[0]);
  return rows[0];
}

/**
 * The statement of debit.sql, which creates the id under the consumer's lock, so charges are in the order of their ids.
 * Resolves to undefined when the balance is too low.
 */
async function debit(
  consumer: Owner,
  charge: { developerNumber: number; tool: string; micros: number },
): Promise<{ id: string; balance: number } | undefined> {
  const { rows } = await pool.query<{ id: string; balance_micros: string }>({
    name: 'debit',
    text: `with debited as (
        update farebox.consumers set spent_micros = spent_micros + $3
        where ledger = $1 and id = $2 and credited_micros - spent_micros - held_micros >= $3
        returning id, spent_micros, credited_micros - spent_micros - held_micros as balance
      )
      insert into farebox.charges (amount_micros, spent_micros, balance_micros, id, consumer_id,
        developer, ledger, receipt_key, tool)
      select $3, spent_micros, balance, uuidv7(), id, $4, $1, 1, $5 from debited
      returning id, balance_micros`,
    values: [
      consumer.ledger,
      consumer.consumer_id,
      charge.micros,
      charge.developerNumber,
      charge.tool,
    ],
  });
  return rows[0] && { id: rows[0].id, balance: Number(rows[0].balance_micros) / 1e6 };
}

const shown = (prefix: string, uuid: string) => `${prefix}_${uuid.replaceAll('-', '')}`;

function sign(payload: object): string {
  const text = Buffer.from(JSON.stringify(payload)).toString('base64url');
  const signature = createHmac('sha256', RECEIPT_SECRET).update(text).digest('base64url');
  return `hmac_sha256.1.${text}.${signature}`;
}

const text = { type: 'string' };
const number = { type: 'number' };

const app = Fastify();
app.post<{ Body: Body }>(
  '/v1/charges',
  {
    schema: {
      body: {
        type: 'object',
        required: ['apiKey', 'tool', 'amount'],
        properties: {
          apiKey: { type: 'string', minLength: 1, maxLength: 100 },
          tool: { type: 'string', minLength: 1, maxLength: 100 },
          amount: { type: 'number', exclusiveMinimum: 0, maximum: 1_000_000 },
        },
      },
      response: {
        201: {
          type: 'object',
          properties: {
            id: text,
            receipt: text,
            tool: text,
            amount: number,
            developerId: text,
            createdAt: text,
            consumerId: text,
            balance: number,
          },
        },
      },
    },
  },
  async (request, reply) => {
    const { apiKey, tool, amount } = request.body;
    const secretKey = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
    const developer = await findOwner(secretKey, 'developer');
    if (!developer) return reply.code(401).send({ error: { code: 'invalid_secret_key' } });
    const consumer = await findOwner(apiKey, 'consumer');
    if (!consumer) return reply.code(401).send({ error: { code: 'invalid_api_key' } });
    const micros = Math.round(amount * 1e6);
    const debited = await debit(consumer, {
      developerNumber: developer.developer_number,
      tool,
      micros,
    });
    if (!debited) {
      return reply.code(402).send({ error: { code: 'insufficient_balance' } });
    }
    const { id, balance } = debited;
    const charge = {
      id: shown('chg', id),
      consumerId: shown('cns', consumer.consumer_id),
      developerId: shown('dev', developer.developer_id),
      tool,
      createdAt: new Date().toISOString(),
    };
    const receipt = sign({ ...charge, micros });
    return reply.code(201).send({ ...charge, receipt, amount, balance });
  },
);

await app.ready();
const at = { port: Number(process.env['PORT']), host: '127.0.0.1', reusePort: true };
app.server.listen(at, () => process.send?.({ ready: true }));
process.once('disconnect', () => process.exit());
