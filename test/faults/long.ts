/**
 * `npm run test:faults:traffic -- --rounds 50`: one random fault after another under uninterrupted charges and
 * payments, on separate servers. After each round the service must take charges again within 10 seconds; at
 * the end the ledger holds exactly the charges that were answered, and every payment is credited, once.
 */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { uuidOf, wireId } from '../../src/domain/ids.ts';
import { createAccount, type TestAccount } from '../support/accounts.ts';
import { Random, SEED } from '../support/random.ts';
import { proveBooks } from '../support/books.ts';
import { call } from '../support/http.ts';
import { balanceOf, pay } from '../support/payments.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { until } from '../support/stack.ts';
import { PersistentCharges } from './persistent-charges.ts';
import { openSite, type Site } from './site.ts';

const CLIENTS = 30;
const PAYERS = 3;
const FIRST_DOLLARS = 1_000_000;
const CHARGE_DOLLARS = 0.001;
const CHECKOUT_DOLLARS = 5;
const RECOVERY_MS_MAX = 10_000;
/** A worker that dies with a payment in hand costs 15 s; its successor may die as well. */
const CREDITS_MS_MAX = 180_000;

const print = (text: string) => process.stdout.write(`${text}\n`);

async function run(rounds: number, seed: number): Promise<void> {
  const random = new Random(seed);
  const site = await openSite(random);
  const account = await createAccount(site.env, FIRST_DOLLARS);
  const payments = new PersistentPayments(site, account, new Random(seed + 1));
  const charges = new PersistentCharges(site.apis, account.developerKey);
  const traffic = [
    ...Array.from({ length: CLIENTS }, () => charges.makeUntilStopped(account, CHARGE_DOLLARS)),
    ...Array.from({ length: PAYERS }, () => payments.makeUntilStopped()),
  ];
  for (let round = 1; round <= rounds; round += 1) {
    await delay(random.between(0, 1_000));
    const what = random.pick(Object.keys(site.faults));
    await site.faults[what]?.();
    const before = charges.made.size;
    await until(() => charges.made.size > before + CLIENTS, { timeoutMs: RECOVERY_MS_MAX });
    assert.deepEqual(charges.violations, []);
    print(`round ${round}: ${what}; ${charges.made.size} charges, ${payments.count} payments`);
  }
  payments.stop();
  charges.stop();
  await Promise.all(traffic);
  assert.deepEqual(charges.violations, []);
  assert.deepEqual(await storedCharges(site, account), charges.made);
  const milli =
    FIRST_DOLLARS * 1_000 + payments.count * CHECKOUT_DOLLARS * 1_000 - charges.made.size;
  await until(async () => (await balanceOf(site.apis[0], account)) === milli / 1_000, {
    timeoutMs: CREDITS_MS_MAX,
  });
  await proveBooks(site.env);
  for (const [outcome, count] of charges.outcomes) print(`  ${outcome}: ${count}`);
  print(`  payments, each credited once: ${payments.count}`);
  await site.close();
}

async function storedCharges(site: Site, { consumerId }: TestAccount): Promise<Set<string>> {
  const { rows } = await site.inSql((sql) =>
    sql.query<{ id: string }>('select id from farebox.charges where consumer_id = $1', [
      uuidOf('consumer', consumerId),
    ]),
  );
  return new Set(rows.map(({ id }) => wireId('charge', id)));
}

/** A consumer that opens checkouts and pays them; a failed step waits for the next time. */
class PersistentPayments {
  readonly #site: Site;
  readonly #account: TestAccount;
  readonly #random: Random;
  readonly #paid = new Set<string>();
  #isStopped = false;

  constructor(site: Site, account: TestAccount, random: Random) {
    this.#site = site;
    this.#account = account;
    this.#random = random;
  }

  get count(): number {
    return this.#paid.size;
  }

  stop(): void {
    this.#isStopped = true;
  }

  async makeUntilStopped(): Promise<void> {
    while (!this.#isStopped) {
      await delay(200);
      const answer = await call(this.#random.pick(this.#site.apis), 'POST', '/v1/checkout', {
        key: this.#account.consumerKey,
        body: { amount: CHECKOUT_DOLLARS },
      }).catch(() => undefined);
      if (answer?.status !== 201) continue;
      const { topUpId, sessionUrl } = answer.body as { topUpId: string; sessionUrl: string };
      assert.ok(await pay(sessionUrl));
      this.#paid.add(topUpId);
    }
  }
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(SEED) },
  },
});
print(`SEED=${values.seed} --rounds ${values.rounds}`);
await mochaGlobalSetup();
try {
  await run(Number(values.rounds), Number(values.seed));
  print('Nothing was lost, nothing doubled, and the books are whole.');
} finally {
  await mochaGlobalTeardown();
}
