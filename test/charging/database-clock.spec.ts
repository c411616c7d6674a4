/** Charges get the time of Postgres, even after the machine of an API process was suspended. */
import assert from 'node:assert/strict';
import {
  ClockArchivedError,
  ClockJumpError,
  ClockSkewError,
  DatabaseClock,
} from '../../src/charging/database-clock.ts';
import { Type } from 'typebox';
import { createDatabase, readClock, row, sql, type Database } from '../../src/store/database.ts';
import { startFaultyLine } from '../support/faulty-line.ts';
import { createTestDatabase, until, type TestDatabase } from '../support/stack.ts';

const SUSPENDED_MS = 100_000;
const STOOD_STILL_MS = 240_000;
const SET_BACK_MS = 3_600_000;
/** Too short to be reported alone; two of them are reported. */
const SHORT_STEP_MS = 20_000;
const SHORT_STEPS = 3;
const OVERDUE_MS = 2_000;

const agoRow = row(Type.Object({ agoMs: Type.Integer() }));

describe("Postgres' clock", () => {
  let own: TestDatabase;
  let database: Database;

  before(async () => {
    own = await createTestDatabase();
    database = await createDatabase(own.url, { maxPoolSize: 1, onError: () => {} });
  });
  after(async () => {
    await database?.end();
    await own?.drop();
  });

  it('is not taken from before the machine was suspended', async () => {
    const clock = new DatabaseClock(database, () => {});
    await clock.start();
    const now = performance.now.bind(performance);
    try {
      const before = clock.checkedNowMs();
      // performance.now() does not count the time in which a machine is suspended.
      performance.now = () => now() - SUSPENDED_MS;
      assert.throws(() => clock.checkedNowMs(), ClockJumpError);
      const after = await until(() => {
        try {
          return clock.checkedNowMs();
        } catch (error) {
          if (error instanceof ClockJumpError) return undefined;
          throw error;
        }
      });
      assert.ok(after >= before, `${after} after ${before}`);
    } finally {
      Reflect.deleteProperty(performance, 'now');
      await clock.stop();
    }
  });

  it('is not taken from a reading during which the process stood still', async () => {
    const errors: unknown[] = [];
    const clock = new DatabaseClock(database, (error) => errors.push(error));
    await clock.start();
    const now = performance.now.bind(performance);
    const dateNow = Date.now;
    let readings = 0;
    let isAsking = false;
    try {
      // It asked four minutes ago: it reads both clocks at once, then Postgres', and then one of its own again.
      performance.now = () => {
        readings += 1;
        isAsking = readings === 1;
        return now() - (isAsking ? STOOD_STILL_MS : 0);
      };
      Date.now = () => {
        const shiftMs = isAsking ? STOOD_STILL_MS : 0;
        isAsking = false;
        return dateNow() - shiftMs;
      };
      await until(() => readings >= 2);
      const skewMs = clock.checkedNowMs() - (await readClock(database));
      assert.ok(Math.abs(skewMs) < 5_000, `${skewMs} ms`);
      assert.match(String(errors[0]), /stood still/);
    } finally {
      Reflect.deleteProperty(performance, 'now');
      Date.now = dateNow;
      await clock.stop();
    }
  });

  it('does not go back when an answer took long', async () => {
    const line = await startFaultyLine({
      host: '127.0.0.1',
      port: Number(new URL(own.url).port),
    });
    const url = new URL(own.url);
    url.hostname = '127.0.0.1';
    url.port = String(line.port);
    const lined = await createDatabase(url.href, { maxPoolSize: 1, onError: () => {} });
    const clock = new DatabaseClock(lined, () => {});
    // Read again if this process stood still between the two clocks.
    const offsetMs = (): number => {
      const fromMs = performance.now();
      const nowMs = clock.checkedNowMs();
      return performance.now() - fromMs < 1 ? nowMs - fromMs : offsetMs();
    };
    try {
      await clock.start();
      line.damage({ kind: 'half_open' });
      await until(async () => (await readAgo(database)) > OVERDUE_MS);
      const beforeMs = offsetMs();
      line.mend();
      let lowestMs = beforeMs;
      await until(async () => {
        lowestMs = Math.min(lowestMs, offsetMs());
        return (await readAgo(database)) < OVERDUE_MS;
      });
      assert.ok(lowestMs > beforeMs - 10, `${beforeMs - lowestMs} ms back`);
    } finally {
      await clock.stop();
      await lined.end();
      await line.stop();
    }
  });

  it('is reported if it differs too much from the clock of this machine, even if nothing is charged', async () => {
    const errors: unknown[] = [];
    const clock = new DatabaseClock(database, (error) => errors.push(error));
    await clock.start();
    const dateNow = Date.now;
    try {
      Date.now = () => dateNow() + SET_BACK_MS;
      await until(() => errors.length > 0);
      assert.ok(errors[0] instanceof ClockSkewError, String(errors[0]));
    } finally {
      Date.now = dateNow;
      await clock.stop();
    }
  });

  it('allows no charges in a month that is archived', async () => {
    const errors: unknown[] = [];
    const clock = new DatabaseClock(database, (error) => errors.push(error));
    await clock.start();
    try {
      await archiveThisMonth(database);
      await until(() => errors.length > 0);
      assert.ok(errors[0] instanceof ClockArchivedError, String(errors[0]));
      assert.throws(() => clock.checkedNowMs(), ClockArchivedError);
      await assert.rejects(new DatabaseClock(database, () => {}).start(), ClockArchivedError);
    } finally {
      await clock.stop();
      await database.query(sql.typeAlias('nothing')`delete from farebox.archived_months`);
    }
  });

  it('is noticed when it is set back, and by how much', async () => {
    const clock = new DatabaseClock(database, () => {});
    const noticed: number[] = [];
    clock.onSetBack((byMs) => noticed.push(byMs));
    await clock.start();
    const now = performance.now.bind(performance);
    try {
      // More time has passed here than on Postgres' clock.
      performance.now = () => now() + SET_BACK_MS;
      await until(() => noticed.length > 0);
      assert.equal(noticed.length, 1);
      assert.ok(Math.abs((noticed[0] ?? 0) - SET_BACK_MS) < 5_000, String(noticed));
    } finally {
      Reflect.deleteProperty(performance, 'now');
      await clock.stop();
    }
  });

  it('is noticed when it is set back in several short steps', async () => {
    const clock = new DatabaseClock(database, () => {});
    const noticed: number[] = [];
    clock.onSetBack((byMs) => noticed.push(byMs));
    await clock.start();
    const now = performance.now.bind(performance);
    let backMs = 0;
    try {
      performance.now = () => now() + backMs;
      for (let step = 1; step <= SHORT_STEPS; step += 1) {
        const offsetMs = clock.nowMs() - performance.now();
        backMs += SHORT_STEP_MS;
        await until(() => clock.nowMs() - performance.now() < offsetMs - SHORT_STEP_MS / 2);
      }
      assert.equal(noticed.length, 1);
      assert.ok(Math.abs((noticed[0] ?? 0) - 2 * SHORT_STEP_MS) < 5_000, String(noticed));
    } finally {
      Reflect.deleteProperty(performance, 'now');
      await clock.stop();
    }
  });
});

/** As if Postgres' clock had been set back by months, after this month was archived. */
async function archiveThisMonth(database: Database): Promise<void> {
  await database.query(sql.typeAlias('nothing')`
    insert into farebox.archived_months (month, charges, amount_micros)
    values (date_trunc('month', now() at time zone 'UTC'), 0, 0)
  `);
}

/** How long ago the last reading was answered. One begins each second, but not before the last one has its answer. */
function readAgo(database: Database): Promise<number> {
  return database.oneFirst(sql.type(agoRow)`
    select (extract(epoch from clock_timestamp() - max(state_change)) * 1000)::int8 as "agoMs"
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and query like '%clock_timestamp%'
  `);
}
