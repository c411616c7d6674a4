/**
 * Connections through a pooler that hands sessions on after each transaction, such as PgBouncer in
 * transaction mode. What a session was asked to keep would be lost, or given to somebody else: so every
 * transaction sets its own limits, and no statement is prepared by name. A statement outside of a transaction
 * is sent together with its limits, as one transaction and one message, so it waits for no further answer.
 */
import { Client, Query } from 'pg';

/**
 * The first of the `options` of such a connection (session.ts). They are never sent as such: the pooler
 * refuses them.
 */
export const POOLED = '-c farebox.pooler=transaction';

type Settings = ReadonlyMap<string, string>;

/** What pg has and its types do not. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void };
  parse(message: { text: string }): void;
  bind(message: object): void;
  execute(message: object): void;
}
interface QueryParts {
  text: string;
  name: string | undefined;
  callback: ((error: Error | null, result?: unknown) => void) | undefined;
  requiresPreparation(): boolean;
  handleCommandComplete(message: unknown, connection: Wire): void;
}
interface ConnectionParameters {
  options?: string | undefined;
  statement_timeout?: number | false | undefined;
  idle_in_transaction_session_timeout?: number | false | undefined;
}

/** From now on, a client of this process whose options begin with POOLED keeps to one transaction. Call it once. */
export function supportPoolers(): void {
  const connect: unknown = Reflect.get(Client.prototype, 'connect');
  Client.prototype.connect = function connectPooled(this: Client, ...args: unknown[]): unknown {
    const settings = takeSettings(this);
    if (settings) queryWith(this, settings);
    return Reflect.apply(connect as () => unknown, this, args);
  } as typeof Client.prototype.connect;
}

/** What this client would ask of its session. */
function takeSettings(client: Client): Settings | undefined {
  const parameters = Reflect.get(client, 'connectionParameters') as ConnectionParameters;
  const { options, statement_timeout, idle_in_transaction_session_timeout } = parameters;
  if (options?.startsWith(POOLED) !== true) return undefined;
  Object.assign(parameters, {
    options: undefined,
    statement_timeout: undefined,
    idle_in_transaction_session_timeout: undefined,
  });
  return new Map([
    ...Object.entries({ statement_timeout, idle_in_transaction_session_timeout })
      .filter(([, value]) => value !== undefined && value !== false)
      .map(([name, value]): [string, string] => [name, String(value)]),
    ...parseOptions(options.slice(POOLED.length)),
  ]);
}

/** `-c name=value`, as PostgreSQL reads them: a backslash keeps a space within a value. */
function parseOptions(options: string): [string, string][] {
  return [...options.matchAll(/(?:-c\s*|--)(?<name>[\w.-]+)=(?<value>(?:\\.|[^\s\\])*)/g)].map(
    ({ groups: { name = '', value = '' } = {} }) => [name, value.replaceAll(/\\(.)/g, '$1')],
  );
}

function queryWith(client: Client, settings: Settings): void {
  const submit = client.query.bind(client) as (...args: unknown[]) => unknown;
  const isOutside = () => client.getTransactionStatus() === 'I';
  client.query = ((config: unknown, values: unknown, callback: unknown) => {
    // Cursors and the like.
    if (typeof config === 'object' && config !== null && 'submit' in config)
      return submit(config, values, callback);
    const query = createQuery([config, values, callback], settings, isOutside);
    if (query.callback) return submit(query);
    return new Promise((resolve, reject) => {
      query.callback = (error, result) => (error ? reject(error) : resolve(result));
      submit(query);
    });
  }) as typeof client.query;
}

function createQuery(
  args: readonly unknown[],
  settings: Settings,
  isOutside: () => boolean,
): QueryParts {
  const query: unknown = Reflect.construct(PooledQuery, [...args]);
  Object.assign(query as PooledQuery, { settings, isOutside });
  return query as QueryParts;
}

const QueryOfPg = Query as unknown as new (...args: unknown[]) => QueryParts & {
  submit(connection: Wire): Error | null;
};

class PooledQuery extends QueryOfPg {
  declare settings: Settings;
  declare isOutside: () => boolean;
  /** Statements of ours that are answered before the query. */
  #before = 0;

  constructor(...args: unknown[]) {
    super(...args);
    // The next transaction may be in a session that has never heard of it.
    this.name = undefined;
  }

  override submit(connection: Wire): Error | null {
    if (!this.isOutside() || this.settings.size === 0) return super.submit(connection);
    if (!this.requiresPreparation()) {
      // Several statements in one message are one transaction, which a BEGIN among them continues. SET, unlike a
      // function, leaves it free to choose its isolation.
      const sets = [...this.settings].map(
        ([name, value]) => `set local ${name} = ${literal(value)}; `,
      );
      this.#before = sets.length;
      this.text = sets.join('') + this.text;
      return super.submit(connection);
    }
    this.#before = 1;
    connection.stream.cork();
    try {
      const calls = [...this.settings].map(
        ([name, value]) => `set_config(${literal(name)}, ${literal(value)}, true) is null`,
      );
      connection.parse({ text: `select where ${calls.join(' or ')}` });
      connection.bind({});
      connection.execute({});
      return super.submit(connection);
    } finally {
      connection.stream.uncork();
    }
  }

  override handleCommandComplete(message: unknown, connection: Wire): void {
    if (this.#before === 0) super.handleCommandComplete(message, connection);
    else this.#before -= 1;
  }
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
