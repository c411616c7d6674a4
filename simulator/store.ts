/**
 * All of the simulator's state, in one SQLite file: objects as the API's JSON, owed webhooks, and answers under
 * idempotency keys. Committed transactions survive kill -9 and power loss (WAL, synchronous=FULL).
 */
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import type Stripe from 'stripe';

/** The kinds of objects, by Stripe's own name for each (the `object` field). */
export interface Kinds {
  customer: Stripe.Customer;
  payment_method: Stripe.PaymentMethod;
  'checkout.session': Stripe.Checkout.Session;
  payment_intent: Stripe.PaymentIntent;
  setup_intent: Stripe.SetupIntent;
  'radar.early_fraud_warning': Stripe.Radar.EarlyFraudWarning;
  charge: Stripe.Charge;
  balance_transaction: Stripe.BalanceTransaction;
  refund: Stripe.Refund;
  review: Stripe.Review;
  dispute: Stripe.Dispute;
  invoice: Stripe.Invoice;
  credit_note: Stripe.CreditNote;
  'tax.calculation': Stripe.Tax.Calculation & { id: string };
  event: Stripe.Event;
}
export type Kind = keyof Kinds;

/** Hidden state of an object that its behavior depends on. */
export type Notes = Readonly<Record<string, unknown>>;

export interface Page {
  /** Matches objects with equal fields. Undefined fields do not filter. */
  readonly where: Readonly<Record<string, string | undefined>>;
  readonly createdMin: number;
  readonly createdMax: number;
  readonly after: number | undefined;
  readonly before: number | undefined;
  readonly limit: number;
}

export interface OwedWebhook {
  readonly eventId: string;
  readonly type: string;
  readonly body: string;
  readonly attempts: number;
  readonly firstAtMs: number;
  readonly nextAtMs: number;
}

export interface KeptAnswer {
  readonly fingerprint: string;
  readonly requestId: string;
  readonly status: number;
  readonly body: string;
}

/** `seq` is the order of creation, which lists page by. `due_at`: when the clock must look at it. */
const SCHEMA = `
  create table if not exists objects (
    seq integer primary key autoincrement,
    id text not null unique,
    kind text not null,
    created integer not null,
    due_at integer,
    body text not null,
    notes text not null
  ) strict;
  create index if not exists objects_by_kind on objects (kind, seq);
  create index if not exists objects_due on objects (due_at) where due_at is not null;
  create index if not exists objects_by_intent on objects (kind, body ->> '$.payment_intent');
  create index if not exists objects_by_customer on objects (kind, body ->> '$.customer');
  create table if not exists owed_webhooks (
    event_id text primary key,
    attempts integer not null default 0,
    first_at_ms integer not null,
    next_at_ms integer not null
  ) strict;
  create index if not exists owed_webhooks_due on owed_webhooks (next_at_ms);
  create table if not exists idempotency_keys (
    key text primary key,
    fingerprint text not null,
    request_id text not null,
    status integer not null,
    body text not null,
    created_at_ms integer not null
  ) strict;
`;

export class Store {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string) {
    this.#database = new DatabaseSync(path, { timeout: 5_000 });
    this.#database.exec('pragma journal_mode = wal; pragma synchronous = full');
    this.#database.exec(SCHEMA);
  }

  close(): void {
    this.#database.close();
  }

  /** Runs `work` in a transaction, which is rolled back when it throws. */
  transaction<T>(work: () => T): T {
    this.#database.exec('begin immediate');
    try {
      const result = work();
      this.#database.exec('commit');
      return result;
    } catch (error) {
      this.#database.exec('rollback');
      throw error;
    }
  }

  insert(object: Kinds[Kind], notes: Notes = {}, dueAt: number | null = null): void {
    this.#run(
      'insert into objects (id, kind, created, due_at, body, notes) values (?, ?, ?, ?, ?, ?)',
      object.id,
      object.object,
      'created' in object ? object.created : object.tax_date,
      dueAt,
      JSON.stringify(object),
      JSON.stringify(notes),
    );
  }

  /** Writes the object's new state; without `dueAt`, that time does not change. */
  update(object: Kinds[Kind], dueAt?: number | null): void {
    this.#run('update objects set body = ? where id = ?', JSON.stringify(object), object.id);
    if (dueAt !== undefined) {
      this.#run('update objects set due_at = ? where id = ?', dueAt, object.id);
    }
  }

  find<K extends Kind>(kind: K, id: string): Kinds[K] | undefined {
    const row = this.#all('select body from objects where id = ? and kind = ?', id, kind)[0];
    return row && (JSON.parse(row['body'] as string) as Kinds[K]);
  }

  /** The object that a field refers to. Fields hold ids, although their types allow objects. */
  follow<K extends Kind>(kind: K, reference: unknown): Kinds[K] | undefined {
    return typeof reference === 'string' ? this.find(kind, reference) : undefined;
  }

  /** Any object by its id, for expanding fields. */
  findAny(id: string): Kinds[Kind] | undefined {
    const row = this.#all('select body from objects where id = ?', id)[0];
    return row && (JSON.parse(row['body'] as string) as Kinds[Kind]);
  }

  notesOf(id: string): Notes {
    const row = this.#all('select notes from objects where id = ?', id)[0];
    return row ? (JSON.parse(row['notes'] as string) as Notes) : {};
  }

  /** Replaces the notes of an object. */
  note(id: string, notes: Notes): void {
    this.#run('update objects set notes = ? where id = ?', JSON.stringify(notes), id);
  }

  seqOf(kind: Kind, id: string): number | undefined {
    const row = this.#all('select seq from objects where id = ? and kind = ?', id, kind)[0];
    return row?.['seq'] as number | undefined;
  }

  /** Newest first; those just before `before`, when it is given. */
  list<K extends Kind>(kind: K, page: Page): Kinds[K][] {
    const filters = Object.entries(page.where).filter(([, value]) => value !== undefined);
    const rows = this.#all(
      `select body from objects where kind = ? and created between ? and ? and seq < ? and seq > ?
        and notes ->> '$.deleted' is null
        ${filters.map(([name]) => `and body ->> '$.${name}' = ?`).join(' ')}
        order by seq ${page.before === undefined ? 'desc' : 'asc'} limit ?`,
      kind,
      page.createdMin,
      page.createdMax,
      page.after ?? Number.MAX_SAFE_INTEGER,
      page.before ?? 0,
      ...filters.map(([, value]) => value as string),
      page.limit,
    );
    const objects = rows.map((row) => JSON.parse(row['body'] as string) as Kinds[K]);
    return page.before === undefined ? objects : objects.toReversed();
  }

  /** Every object of a kind with these fields, oldest first. */
  all<K extends Kind>(kind: K, where: Page['where']): Kinds[K][] {
    const everything = { createdMin: 0, createdMax: Number.MAX_SAFE_INTEGER, after: undefined };
    return this.list(kind, {
      ...everything,
      where,
      before: 0,
      limit: Number.MAX_SAFE_INTEGER,
    }).toReversed();
  }

  /** The objects that are due at `now`, in Unix seconds. */
  due<K extends Kind>(kind: K, now: number): Kinds[K][] {
    const query = 'select body from objects where due_at <= ? and kind = ?';
    return this.#all(query, now, kind).map((row) => JSON.parse(row['body'] as string) as Kinds[K]);
  }

  forgetDue(id: string): void {
    this.#run('update objects set due_at = null where id = ?', id);
  }

  owe(eventId: string, nowMs: number): void {
    this.#run(
      'insert into owed_webhooks (event_id, first_at_ms, next_at_ms) values (?, ?, ?)',
      eventId,
      nowMs,
      nowMs,
    );
  }

  /** The owed webhooks that are due by `nowMs`, soonest first or in random order. */
  owedBy(nowMs: number, limit: number, random = false): OwedWebhook[] {
    const order = random ? 'random()' : 'next_at_ms, owed_webhooks.rowid';
    const query = `select event_id as "eventId", body ->> '$.type' as type, body, attempts,
        first_at_ms as "firstAtMs", next_at_ms as "nextAtMs"
      from owed_webhooks join objects on objects.id = event_id
      where next_at_ms <= ? order by ${order} limit ?`;
    return this.#all(query, nowMs, limit) as unknown as OwedWebhook[];
  }

  /** When the next webhook after `nowMs` is due. */
  nextOwedAtMs(nowMs: number): number | undefined {
    const query = 'select min(next_at_ms) as next from owed_webhooks where next_at_ms > ?';
    return (this.#all(query, nowMs)[0]?.['next'] as number | null | undefined) ?? undefined;
  }

  oweNothing(): void {
    this.#run('delete from owed_webhooks');
  }

  oweAllNow(nowMs: number): void {
    this.#run('update owed_webhooks set next_at_ms = ?', nowMs);
  }

  postpone(eventId: string, nextAtMs: number): void {
    this.#run(
      'update owed_webhooks set attempts = attempts + 1, next_at_ms = ? where event_id = ?',
      nextAtMs,
      eventId,
    );
  }

  settle(eventId: string): void {
    this.#run('delete from owed_webhooks where event_id = ?', eventId);
  }

  answerUnder(key: string): KeptAnswer | undefined {
    const query = `select fingerprint, request_id as "requestId", status, body
      from idempotency_keys where key = ?`;
    return this.#all(query, key)[0] as unknown as KeptAnswer | undefined;
  }

  keepAnswer(key: string, answer: KeptAnswer, nowMs: number): void {
    this.#run(
      'insert into idempotency_keys values (?, ?, ?, ?, ?, ?)',
      key,
      answer.fingerprint,
      answer.requestId,
      answer.status,
      answer.body,
      nowMs,
    );
  }

  forgetAnswersBefore(timeMs: number): void {
    this.#run('delete from idempotency_keys where created_at_ms < ?', timeMs);
  }

  #run(query: string, ...values: SQLInputValue[]): void {
    this.#prepare(query).run(...values);
  }

  #all(query: string, ...values: SQLInputValue[]) {
    return this.#prepare(query).all(...values);
  }

  #prepare(query: string): StatementSync {
    let statement = this.#statements.get(query);
    if (!statement) {
      statement = this.#database.prepare(query);
      this.#statements.set(query, statement);
    }
    return statement;
  }
}
