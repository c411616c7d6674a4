/** A consumer with a tree of budgets in the database, and the model beside it that says what each should come to. */
import assert from 'node:assert/strict';
import { hash, randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import { WINDOW_UNITS } from '../../../src/domain/budget.ts';
import { uuidOf } from '../../../src/domain/ids.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { getCounters } from '../../../src/store/balance/consumers.ts';
import { listBudgets, type TreeView } from '../../../src/store/budgets/budgets.ts';
import {
  changeBudget,
  closeBudget,
  makeBudget,
  type BudgetSettings,
} from '../../../src/store/budgets/change-budgets.ts';
import { makeSpendKey } from '../../../src/store/budgets/spend-keys.ts';
import {
  postFittingCharges,
  type ChargeDraft,
  type ChargeOutcome,
} from '../../../src/store/charges/post-charges.ts';
import { postSpends } from '../../../src/store/charges/post-spends.ts';
import type { Database } from '../../../src/store/database.ts';
import { UNLIMITED } from '../../support/budget-settings.ts';
import { createTestAccounts } from '../../support/accounts.ts';
import { newDraft, RECEIPT_KEY, replayWindow } from '../../support/charge-drafts.ts';
import type { Random } from '../../support/random.ts';
import { BudgetModel, type ModelKey, type ModelNode } from './budget-model.ts';

/** Longer than any window, so that what is moved back by it lies before the current one. */
const LONG_AGO = '40 days';

export class BudgetHarness {
  readonly model: BudgetModel;
  readonly view: TreeView;
  readonly #database: Database;
  readonly #client: Client;
  readonly #accountId: string;

  constructor(
    database: Database,
    client: Client,
    accountId: string,
    view: TreeView,
    available: number,
  ) {
    this.#database = database;
    this.#client = client;
    this.#accountId = accountId;
    this.view = view;
    this.model = new BudgetModel(available);
  }

  /** Below a random node, or a root, with random limits of up to this many micros. */
  async addNode(random: Random, most: number): Promise<void> {
    const { model } = this;
    const parents = model.nodes.filter(({ path, isClosed }) => path.length < 6 && !isClosed);
    const parent = parents.length > 0 && random.between(0, 3) > 0 ? random.pick(parents) : null;
    const limit = random.between(0, 2) > 0 ? random.between(0, most) : null;
    const window = random.between(0, 1)
      ? { unit: random.pick(WINDOW_UNITS), limitMicros: asMicros(random.between(0, most / 2)) }
      : null;
    const maxPerCall = random.between(0, 3) === 0 ? random.between(1, 80) : null;
    await this.addNodeWith(parent, {
      limitMicros: limit === null ? null : asMicros(limit),
      window,
      maxPerCallMicros: maxPerCall === null ? null : asMicros(maxPerCall),
    });
  }

  /** With a key. Null: an ancestor is closed. */
  async addNodeWith(
    parent: ModelNode | null,
    limits: Pick<BudgetSettings, 'limitMicros' | 'window' | 'maxPerCallMicros'>,
  ): Promise<ModelNode | null> {
    const { limitMicros, window, maxPerCallMicros } = limits;
    const made = await makeBudget(this.#database, this.view, parent?.id ?? null, {
      ...UNLIMITED,
      ...limits,
    });
    if (made.kind !== 'made') {
      assert.equal(made.kind, 'closed');
      return null;
    }
    const { id, number } = made.budget;
    const path: ModelNode[] = [...(parent?.path ?? [])];
    const node: ModelNode = {
      id,
      number,
      path,
      maxPerCall: maxPerCallMicros,
      limit: limitMicros,
      used: 0,
      window: window && { unit: window.unit, limit: window.limitMicros, used: 0, since: 0 },
      isClosed: false,
    };
    path.push(node);
    assert.deepEqual(
      made.budget.path,
      path.map((each) => each.number),
    );
    this.model.nodes.push(node);
    await this.#addKey(node);
    return node;
  }

  async #addKey(node: ModelNode): Promise<void> {
    const made = await makeSpendKey(this.#database, this.view, node.number, {
      hash: hash('sha256', randomUUID()),
      lastFour: 'test',
      accountId: this.#accountId,
      name: null,
      expiresAt: null,
    });
    assert.ok(made.kind === 'made', made.kind);
    const { rows } = await this.#client.query<{ number: number }>(
      'select number from farebox.spend_keys where id = $1',
      [made.id],
    );
    this.model.keys.push({ number: rows[0]?.number ?? assert.fail(), node });
  }

  draft({ number, node }: ModelKey, micros: number): ChargeDraft {
    const path = node?.path.map((each) => each.number) ?? [];
    return { ...newDraft(this.view, micros), spend: node && { number, path } };
  }

  async setLimit(random: Random, node: ModelNode, most: number): Promise<void> {
    const limit = random.between(0, 4) === 0 ? null : random.between(0, most);
    const changes = { limitMicros: limit === null ? null : asMicros(limit) };
    const { kind } = await changeBudget(this.#database, this.view, node.id, changes);
    if (kind === 'changed') node.limit = limit;
    else assert.equal(kind, 'closed');
  }

  /** Between waves: what a window counts depends on it. */
  async setWindow(random: Random, node: ModelNode, most: number): Promise<void> {
    const unit = random.pick([null, ...WINDOW_UNITS]);
    const limit = asMicros(random.between(0, most));
    const window = unit && { unit, limitMicros: limit };
    const { kind } = await changeBudget(this.#database, this.view, node.id, { window });
    if (kind !== 'changed') return assert.equal(kind, 'closed');
    if (unit !== null && node.window?.unit === unit) node.window.limit = limit;
    else node.window = unit && { unit, limit, used: 0, since: this.model.wave + 1 };
  }

  async close(node: ModelNode): Promise<void> {
    await closeBudget(this.#database, this.view, node.id);
    node.isClosed = true;
  }

  /** Between waves. */
  async turnWindows(): Promise<void> {
    const consumer = [this.view.ledger, this.view.consumerId];
    await this.#client.query(
      `update farebox.budgets set window_began = window_began - interval '${LONG_AGO}'
       where ledger = $1 and consumer_id = $2`,
      consumer,
    );
    await this.#client.query(
      `update farebox.holds set placed_at = placed_at - interval '${LONG_AGO}'
       where ledger = $1 and consumer_id = $2`,
      consumer,
    );
    this.model.turnWindows();
  }

  async assertSame(): Promise<void> {
    const { model, view } = this;
    const { balanceMicros } = await getCounters(this.#database, view);
    assert.equal(balanceMicros, model.available, 'the balance');
    const shown = await listBudgets(this.#database, view, undefined, {
      limit: 1_000,
      beforeId: undefined,
    });
    assert.deepEqual(
      shown.map(({ number, usedMicros, window }) => [number, usedMicros, window?.usedMicros]),
      model.nodes.toReversed().map(({ number, used, window }) => [number, used, window?.used]),
    );
  }
}

/** Consumers with accounts and this many dollars. */
export async function openHarnesses(
  database: Database,
  client: Client,
  databaseUrl: string,
  count: number,
  dollars: number,
): Promise<BudgetHarness[]> {
  const accounts = await createTestAccounts(databaseUrl, count, dollars);
  const harnesses: BudgetHarness[] = [];
  for (const { consumerId: wire } of accounts) {
    const consumerId = uuidOf('consumer', wire) ?? '';
    const { rows } = await client.query<{ id: string; ledger: number }>(
      'select id, ledger from farebox.accounts where consumer_id = $1',
      [consumerId],
    );
    const { id, ledger } = rows[0] ?? assert.fail();
    const view = { ledger, consumerId, root: null };
    harnesses.push(new BudgetHarness(database, client, id, view, dollars * 1e6));
  }
  return harnesses;
}

/** By both statements, as the batcher does it. */
export async function postDrafts(
  database: Database,
  drafts: readonly ChargeDraft[],
): Promise<ChargeOutcome[]> {
  const outcomes = await postFittingCharges(database, drafts, RECEIPT_KEY, replayWindow());
  const left = drafts.filter((_, index) => outcomes[index] === undefined);
  if (left.length === 0) return outcomes as ChargeOutcome[];
  const decided = await postSpends(database, left, RECEIPT_KEY, replayWindow());
  return outcomes.map((outcome) => outcome ?? (decided.shift() as ChargeOutcome));
}
