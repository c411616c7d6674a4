/**
 * Spends by random keys of random trees of budgets, through three API processes, while limits change, windows
 * turn, keys are revoked, branches are closed, and processes are killed. Every node of every tree then has
 * used what was answered, to the micro-dollar, and doctor finds nothing. BUDGET_SPENDS says how many; `npm
 * run test:budgets` makes ten million.
 */
import assert from 'node:assert/strict';
import { uuidOf } from '../../src/domain/ids.ts';
import { BudgetReply, BudgetUsageReply } from '../../src/schemas/budgets.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import { rollUp } from '../../src/store/earnings/rollups.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApiProcesses, type TestApi } from '../support/api.ts';
import { proveBooks } from '../support/books.ts';
import { askBudget, askChange, askKey, showBudget } from '../support/budget-requests.ts';
import { bodyOf, call, isToRepeat, type Answer } from '../support/http.ts';
import { Random, SEED } from '../support/random.ts';
import { startApiProcess, until, type ServerProcess } from '../support/stack.ts';
import { NewKeyReply } from '../../src/schemas/keys.ts';
import { BudgetTraffic, type Spender } from './budget-traffic.ts';

const SPENDS = Number(process.env['BUDGET_SPENDS'] ?? 100_000);
const PROCESSES = 3;
/** In a long run more, as few accounts that each reach a limit in every batch decide their charges one by one. */
const CONSUMERS = SPENDS < 20_000 ? 3 : 16;
const CALLERS = 12;
const NODES = 14;
/** Spends of one request. In a long run most of the time should go into deciding them, not into requests. */
const BATCH = Math.min(Math.max(50, Math.ceil(SPENDS / 400)), 500);
/** How often in one run; in a long one, every so many spends. */
const KILLS = Math.min(Math.max(3, Math.ceil(SPENDS / 50_000)), 60);
const CHANGES = KILLS * 8;
const PROGRESS_MS = 10_000;

interface Tree {
  readonly account: TestAccount;
  readonly nodes: { readonly id: string; readonly path: readonly string[]; isClosed: boolean }[];
}

describe('budgets, while processes are killed', function () {
  this.timeout(600_000 + SPENDS * 20);
  const random = new Random(SEED);
  let api: TestApi<ServerProcess>;
  let database: Database;
  let servers: ServerProcess[];
  const trees: Tree[] = [];
  const spenders: Spender[] = [];

  before(async () => {
    api = await startTestApiProcesses({ servers: PROCESSES });
    servers = [...api.servers];
    database = await createDatabase(api.databaseUrl, { maxPoolSize: 2, onError: () => {} });
    for (let n = 0; n < CONSUMERS; n += 1) {
      const tree: Tree = { account: await api.createAccount(1_000_000), nodes: [] };
      trees.push(tree);
      for (let node = 0; node < NODES; node += 1) await grow(tree);
    }
  });
  after(async () => {
    await Promise.all((servers ?? []).map((server) => server.stop()));
    await database?.end();
    await api?.stop();
  });

  it(`are exact at every node after ${SPENDS} spends and ${KILLS} kills (SEED=${SEED})`, async () => {
    const accounts = trees.map(({ account }) => account);
    const traffic = new BudgetTraffic(
      () => servers,
      accounts,
      () => spenders,
      random,
      BATCH,
    );
    const beganMs = performance.now();
    const progress = setInterval(() => say(traffic, beganMs), PROGRESS_MS);
    const callers = Array.from({ length: CALLERS }, () => traffic.spendUntil(SPENDS));
    try {
      await Promise.all([...callers, disturb(traffic)]);
    } finally {
      clearInterval(progress);
    }
    say(traffic, beganMs);
    assert.deepEqual(traffic.violations, []);
    for (const code of ['spend_limit_reached', 'invalid_api_key']) {
      assert.ok(traffic.refusals.get(code), `no charge was refused as ${code}`);
    }
    // Half of the sums are read from the tail, half after it was moved.
    await assertExact(trees.slice(1));
    while ((await rollUp(database)).hasMore);
    await assertExact(trees);
    await proveBooks(api.env, { processor: false });
  });

  /** In step with the traffic, so that a run of any length has them throughout. */
  async function disturb(traffic: BudgetTraffic): Promise<void> {
    for (let n = 1; n <= CHANGES; n += 1) {
      const reached = Math.min((SPENDS * n) / (CHANGES + 1), SPENDS - 1);
      await until(() => traffic.spends >= reached, { timeoutMs: 600_000 });
      if (n % 8 === 0) await replaceApi(random.between(0, PROCESSES - 1));
      else if (n % 8 === 4) while ((await rollUp(database)).hasMore);
      else await change(random.pick(trees), n === 1 ? 'revoke' : undefined);
    }
  }

  async function change(tree: Tree, what = anyChange()): Promise<void> {
    const { consumerKey } = tree.account;
    const node = random.pick(tree.nodes.filter(({ isClosed }) => !isClosed));
    switch (what) {
      case 'limit': {
        const limit = random.chance(0.3) ? null : dollars(60);
        return set(tree, node.id, { limit });
      }
      case 'window':
        return set(tree, node.id, anyWindow());
      case 'turn':
        return turnWindows(tree);
      case 'revoke': {
        const own = spenders.filter(({ path }) => tree.nodes.some(({ id }) => id === path.at(-1)));
        const { id } = random.pick(own);
        const path = `/v1/keys/${id}/revoke`;
        await persist(() => call(anyServer(), 'POST', path, { key: consumerKey }));
        return;
      }
      case 'grow':
        return grow(tree);
      case 'close': {
        const leaf = tree.nodes.findLast(({ isClosed }) => !isClosed);
        if (!leaf || leaf.path.length === 1) return;
        leaf.isClosed = true;
        const path = `/v1/budgets/${leaf.id}/close`;
        const close = () => call(anyServer(), 'POST', path, { key: consumerKey });
        bodyOf(await persist(close), 200, BudgetReply);
      }
    }
  }

  async function set({ account }: Tree, id: string, change: object): Promise<void> {
    const ask = () => askChange(anyServer(), account.consumerKey, id, { ...change });
    bodyOf(await persist(ask), 200, BudgetReply);
  }

  function anyChange() {
    return random.weighted({ limit: 4, window: 2, turn: 3, revoke: 2, grow: 2, close: 1 });
  }

  /** A node below a random one, or a root, with a key. Every retry is the same request. */
  async function grow(tree: Tree): Promise<void> {
    const { consumerKey } = tree.account;
    const parents = tree.nodes.filter(({ path, isClosed }) => path.length < 6 && !isClosed);
    const parent = parents.length > 0 && random.chance(0.85) ? random.pick(parents) : undefined;
    const body = {
      name: `node ${tree.nodes.length}`,
      ...(parent && { parentId: parent.id }),
      limit: random.chance(0.4) ? null : dollars(90),
      ...anyWindow(),
    };
    const asked = await persist(() => askBudget(anyServer(), consumerKey, body));
    const { id } = bodyOf(asked, 201, BudgetReply);
    const path = [...(parent?.path ?? []), id];
    tree.nodes.push({ id, path, isClosed: false });
    const made = await persist(() => askKey(anyServer(), consumerKey, id));
    const { id: keyId, key } = bodyOf(made, 201, NewKeyReply);
    spenders.push({ id: keyId, key, path, charges: 0, spent: 0, refunded: 0, held: 0 });
  }

  function anyWindow() {
    const per = random.pick(['hour', 'day', 'week', 'month'] as const);
    return { window: random.chance(0.5) ? null : { per, limit: dollars(40) } };
  }

  /** So many that a good part of all spends reaches a limit. */
  function dollars(most: number): number {
    return Math.round((random.between(1, most) * SPENDS) / (27 * CONSUMERS)) / 100;
  }

  /** As if everything up to now had happened in windows that are over. */
  async function turnWindows({ account }: Tree): Promise<void> {
    const consumer = [uuidOf('consumer', account.consumerId)];
    await api.sql.query('begin');
    await api.sql.query(
      'select from farebox.consumers where id = $1 and ledger = (select ledger from farebox.accounts where consumer_id = $1) for update',
      consumer,
    );
    for (const [table, column] of [
      ['budgets', 'window_began'],
      ['holds', 'placed_at'],
    ]) {
      await api.sql.query(
        `update farebox.${table} set ${column} = ${column} - interval '40 days' where consumer_id = $1`,
        consumer,
      );
    }
    await api.sql.query('commit');
  }

  async function replaceApi(index: number): Promise<void> {
    const victim = servers[index] as ServerProcess;
    victim.kill('SIGKILL');
    await victim.exited;
    servers[index] = await startApiProcess({ env: { ...api.env, PORT: new URL(victim.url).port } });
  }

  function anyServer(): ServerProcess {
    return random.pick(servers);
  }

  async function assertExact(checked: readonly Tree[]): Promise<void> {
    for (const { account, nodes } of checked) {
      for (const { id } of nodes) {
        const below = spenders.filter(({ path }) => path.includes(id));
        const sum = (of: (by: Spender) => number) => below.reduce((all, by) => all + of(by), 0);
        const { used } = await showBudget(anyServer(), account.consumerKey, id);
        const net = sum(({ spent, refunded }) => spent - refunded);
        assert.equal(Math.round(used * 1e6), net + sum(({ held }) => held), `used of ${id}`);
        const path = `/v1/budgets/${id}/usage?limit=1`;
        const answer = await call(anyServer(), 'GET', path, { key: account.consumerKey });
        const { total } = bodyOf(answer, 200, BudgetUsageReply);
        assert.deepEqual(
          [Math.round(total.spent * 1e6), total.charges],
          [net, sum(({ charges }) => charges)],
          `usage of ${id}`,
        );
      }
    }
  }

  /** In a long run, so that one sees it move. */
  function say({ spends, refusals }: BudgetTraffic, beganMs: number): void {
    if (SPENDS < 20_000) return;
    const seconds = (performance.now() - beganMs) / 1_000;
    const refused = [...refusals].map(([code, count]) => `${count} ${code}`).join(', ');
    process.stderr.write(
      `${spends} spends in ${seconds.toFixed(0)} s, ${(spends / seconds).toFixed(0)} a second; ${refused}\n`,
    );
  }
});

/** A change by its owner, who repeats it while it is not made, at another process when one was killed. */
async function persist(ask: () => Promise<Answer>): Promise<Answer> {
  return until(async () => {
    try {
      const answer = await ask();
      return isToRepeat(answer) ? null : answer;
    } catch (error) {
      if (error instanceof TypeError && error.cause !== undefined) return null;
      throw error;
    }
  });
}
