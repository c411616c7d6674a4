/** How the bench evaluates its measurements: the best connection count, ratios within a round, targets. */
import assert from 'node:assert/strict';
import { bestOf, measureInTurn, median, type RowResult } from '../../bench/rounds.ts';
import { isReached, TARGETS, withRivals } from '../../bench/targets.ts';
import { readOptions } from '../../bench/options.ts';

/** A row by its connection counts, each with one rate per round. */
function row(key: string, rates: Readonly<Record<number, readonly number[]>>): RowResult {
  return {
    key,
    name: key,
    variants: Object.entries(rates).map(([connections, perRound]) => ({
      connections: Number(connections),
      rounds: perRound.map((perSecond) => ({ count: 1, perSecond, p50Ms: 1e3 / perSecond })),
    })),
  };
}

function targetOf(name: string) {
  const target = TARGETS.find((candidate) => candidate.name === name);
  assert.ok(target);
  return target;
}

function valuesOf(name: string, rows: readonly RowResult[]): readonly number[] {
  return targetOf(name).values({ rows });
}

describe('the bench', () => {
  it('takes the connection count with the highest median, not the one with the highest peak', () => {
    const best = bestOf(row('U', { 64: [100, 101, 900], 128: [300, 310, 320] }));
    assert.equal(best.connections, 128);
  });

  it('compares within a round, each row at its own best connection count', () => {
    const rows = [
      row('U', { 64: [10, 10, 10], 256: [30, 40, 60] }),
      row('pgU', { 8: [10, 20, 30], 64: [1, 1, 1] }),
    ];
    assert.deepEqual(valuesOf('single charges / debits by Postgres alone', rows), [3, 2, 2]);
  });

  it('compares latencies where the target is a waiting time', () => {
    const rows = [row('L', { 1: [500] }), row('pgL', { 1: [1_000] })];
    assert.deepEqual(valuesOf('one connection, p50 / one debit by Postgres alone, p50', rows), [2]);
  });

  it('gives two limits together the time that the slower one takes', () => {
    const name = 'single charges / bare Koa, then the charge statement';
    const limits = [row('K', { 64: [300, 200] }), row('F', { 2: [150, 200] })];
    assert.deepEqual(valuesOf(name, [row('U', { 64: [100, 50] }), ...limits]), [1, 0.5]);
    assert.deepEqual(valuesOf(name, [row('U', { 64: [100] }), row('K', { 64: [300] })]), []);
  });

  it('says nothing about a target whose rows were not measured', () => {
    assert.deepEqual(valuesOf('single charges / bare Koa', [row('U', { 64: [1] })]), []);
  });

  it('wants a rate that is high enough, and a wait, a size and a latency that are low enough', () => {
    for (const [name, goal] of [
      ['single charges / debits by Postgres alone', 1.5],
      ['one hot consumer / debits of one row', 5],
    ] as const) {
      const verdicts = [goal - 0.1, goal, goal + 0.1].map((value) =>
        isReached(targetOf(name), [value]),
      );
      assert.deepEqual(verdicts, [false, true, true], name);
    }
    for (const [name, goal] of [
      ['one connection, p50 / one debit by Postgres alone, p50', 3],
      ['tools, p50, much data / little', 1.5],
      ['charges with much data, p99 ms', 30],
      ['bytes a charge in Postgres', 300],
    ] as const) {
      const verdicts = [goal - 0.1, goal, goal + 0.1].map((value) =>
        isReached(targetOf(name), [value]),
      );
      assert.deepEqual(verdicts, [true, true, false], name);
    }
  });

  it('takes the mean of the middle two of an even number of values', () => {
    assert.equal(median([4, 1, 3, 2]), 2.5);
  });

  it('also measures the rows that a row’s targets are compared with', () => {
    assert.deepEqual(withRivals(['H']), ['H', 'pgH']);
    assert.deepEqual(withRivals(['U']), ['U', 'pgU', 'fastify', 'K', 'F']);
  });

  it('measures every row at every connection count in each round, after one round that does not count', async () => {
    const measured: string[] = [];
    const rows = ['a', 'b'].map((key) => ({
      key,
      name: key,
      connections: [1, 2],
      measure: ({ connections }: { connections: number }) => {
        measured.push(`${key}${connections}`);
        return Promise.resolve({ count: 1, perSecond: 1 });
      },
    }));
    const results = await measureInTurn(rows, { rounds: 2, seconds: 1, seed: 1, say: () => {} });
    const round = ['a1', 'a2', 'b1', 'b2'];
    assert.deepEqual(measured, [...round, ...round, ...round]);
    assert.deepEqual(
      results.flatMap(({ variants }) => variants.map(({ rounds }) => rounds.length)),
      [2, 2, 2, 2],
    );
  });

  it('calls a run partial only when it is smaller in some way', () => {
    assert.equal(readOptions([]).isPartial, false);
    assert.equal(readOptions(['--large', '--seed', '7']).isPartial, false);
    assert.equal(readOptions(['--rounds', '3']).isPartial, true);
    assert.equal(readOptions(['--rows', 'U']).isPartial, true);
  });

  it('refuses rows that do not exist and values that are not numbers', () => {
    assert.throws(() => readOptions(['--rows', 'U,Z']), /there is no row Z/);
    assert.throws(() => readOptions(['--seconds', '0.5']), /--seconds must be an integer/);
  });
});
