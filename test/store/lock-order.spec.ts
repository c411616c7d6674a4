/**
 * Changes of an account, its consumer and its automatic top-ups, in pairs at the same moment: each locks rows
 * in the order of docs/decisions/0017-automatic-top-ups-begin-in-the-charge.md, so none waits in a circle.
 */
import assert from 'node:assert/strict';
import { hash, randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { asMicros } from '../../src/domain/money.ts';
import { changeAccountKeys } from '../../src/store/accounts/account-keys.ts';
import { closeBudget, insertBudget } from '../../src/store/budgets/change-budgets.ts';
import { findDeveloperBudget } from '../../src/store/budgets/developer-budgets.ts';
import { reopenBudget } from '../../src/store/budgets/reopen-budget.ts';
import { makeSpendKey } from '../../src/store/budgets/spend-keys.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import { makeWebhookEndpoint } from '../../src/store/events/webhook-endpoints.ts';
import { takeNotices } from '../../src/store/outbox.ts';
import {
  chooseCard,
  recordCardSaved,
  setAutoTopUp,
  takeUpAutoTopUp,
} from '../../src/store/top-ups/auto-top-ups.ts';
import { changeConsent } from '../../src/store/top-ups/monthly-ceiling.ts';
import { UNLIMITED } from '../support/budget-settings.ts';
import { dispute, newPayer, processorId, type Payer } from '../support/payer.ts';
import { createTestDatabase, until, type TestDatabase } from '../support/stack.ts';

const ROUNDS = 12;
const DOLLAR = 1_000_000;
const BUDGET = { ...UNLIMITED, name: 'agent' };

describe('changes at the same moment', () => {
  let testDatabase: TestDatabase;
  let watcher: Client;
  let database: Database;
  let payer: Payer;

  beforeEach(async () => {
    testDatabase = await createTestDatabase();
    watcher = new Client({ connectionString: testDatabase.url });
    await watcher.connect();
    database = await createDatabase(testDatabase.url, { maxPoolSize: 4, onError: () => {} });
    payer = await newPayer(database);
    await payer.topUp(15 * DOLLAR);
  });
  afterEach(async () => {
    await database?.end();
    await watcher?.end();
    await testDatabase?.drop();
  });

  /** Connections report their deadlocks at the latest when they end. */
  async function countDeadlocks(): Promise<number> {
    await database.end();
    await until(async () => {
      const { rowCount } = await watcher.query(
        'select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
      );
      return rowCount === 0;
    });
    const { rows } = await watcher.query<{ deadlocks: number }>(
      'select deadlocks::int from pg_stat_database where datname = current_database()',
    );
    return rows[0]?.deadlocks ?? assert.fail();
  }

  /** The take-up of a notice, which the relay has delivered before. */
  async function takeUpOne(): Promise<() => Promise<void>> {
    await changeConsent(database, payer.consumerId, {
      ceilingMicros: asMicros(10_000 * DOLLAR),
      givenBy: 'operator',
    });
    await setAutoTopUp(database, payer, {
      thresholdMicros: asMicros(100 * DOLLAR),
      amountMicros: asMicros(DOLLAR),
      ceilingMicros: asMicros(1_000 * DOLLAR),
    });
    assert.ok(await payer.charge(1));
    const [notice] = (await takeNotices(database, 1_000, 60_000)).filter(
      ({ topic, subjectId }) => topic === 'auto_top_up' && subjectId === payer.consumerId,
    );
    assert.ok(notice);
    // Restored meanwhile, so that it is dropped and the threshold is set again.
    await watcher.query('update farebox.auto_top_ups set threshold_micros = 1');
    return () => takeUpAutoTopUp(database, { ...notice, attempts: 2 });
  }
  const changeKeys = () => changeAccountKeys(database, payer, { charge: 'open' });
  const makeEndpoint = () =>
    makeWebhookEndpoint(database, payer.accountId, 1, {
      url: 'https://example.com',
      types: null,
      description: '',
    });
  const makeKey = () =>
    makeSpendKey(database, payer, 1, {
      hash: hash('sha256', randomUUID()),
      lastFour: 'aaaa',
      accountId: payer.accountId,
      name: null,
      expiresAt: null,
    });
  const consent = () =>
    changeConsent(database, payer.consumerId, {
      ceilingMicros: asMicros(9_000 * DOLLAR),
      givenBy: 'operator',
    });
  const choose = () => chooseCard(database, payer, `pm_${randomUUID()}`);
  const save = async () => {
    await watcher.query(
      `update farebox.accounts set processor_customer_id = 'cus_1', processor_card_id = null`,
    );
    await watcher.query('update farebox.auto_top_ups set declines = 1');
    await database.transaction((tx) => recordCardSaved(tx, 'cus_1'));
  };
  /** Closes the budget of the account's own developer, and reopens it. */
  async function closeAndReopen(): Promise<readonly (() => Promise<unknown>)[]> {
    await changeAccountKeys(database, payer, { developerDayMicros: asMicros(DOLLAR) });
    const { rows } = await watcher.query<{ developerId: string; developerNumber: number }>(
      `select developer_id as "developerId", developer_number as "developerNumber"
       from farebox.accounts where id = $1`,
      [payer.accountId],
    );
    const [developer] = rows;
    assert.ok(developer);
    const { ledger, consumerId, accountId } = payer;
    const asked = { ledger, consumerId, accountId, ...developer, keyId: randomUUID() };
    const found = await findDeveloperBudget(database, asked);
    assert.ok(found.kind === 'found');
    const view = { ledger, consumerId, accountId, root: null };
    const { budgetId } = found.budget;
    return [
      () => closeBudget(database, view, budgetId),
      () => reopenBudget(database, view, budgetId),
    ];
  }
  const disputeOne = async () =>
    payer.report(await payer.topUp(DOLLAR), dispute(processorId('dp'), DOLLAR));

  for (const [name, pair] of [
    ['an endpoint is made and the account keys change', async () => [makeEndpoint, changeKeys]],
    [
      'the budget of a developer is closed and reopened, and the account keys change',
      async () => [...(await closeAndReopen()), changeKeys],
    ],
    [
      'the budget of a developer is closed and reopened, and an endpoint is made',
      async () => [...(await closeAndReopen()), makeEndpoint],
    ],
    ['a notice is taken up and a spend key is made', async () => [await takeUpOne(), makeKey]],
    [
      'a notice is taken up and the account keys change',
      async () => [await takeUpOne(), changeKeys],
    ],
    ['a notice is taken up and the consent changes', async () => [await takeUpOne(), consent]],
    ['a notice is taken up and a card is chosen', async () => [await takeUpOne(), choose]],
    ['a notice is taken up and a card is saved', async () => [await takeUpOne(), save]],
    ['a notice is taken up and a dispute opens', async () => [await takeUpOne(), disputeOne]],
  ] as const) {
    it(`end without a deadlock: ${name}`, async () => {
      const view = { ...payer, root: null };
      await database.transaction((tx) => insertBudget(tx, view, null, BUDGET));
      for (let round = 0; round < ROUNDS; round += 1) {
        const changes = await pair();
        await Promise.all([...changes, () => payer.charge(1)].map((change) => change()));
        await watcher.query('delete from farebox.webhook_endpoints');
      }
      assert.equal(await countDeadlocks(), 0);
    });
  }
});
