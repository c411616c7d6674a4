/** docs/limits.md against the code: every figure is the one that holds, and a test of each exists. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Console } from '../../src/console/console.ts';
import { connectionsMax } from '../../src/embedded/parts.ts';
import type { ApiPools } from '../../src/processes/api-pools.ts';
import { read, ROOT } from './sources.ts';

interface Row {
  readonly limit: string;
  readonly figure: string;
  readonly setBy: string;
  readonly test: string;
}

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  bytes: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  ms: 1,
  s: 1_000,
  h: 3_600_000,
};
const MICROS = 1_000_000;
/** Figures that are not ours to choose. */
const SET_ELSEWHERE = ['the system', 'the owner'];
/** A number or a product of numbers, also of micro-dollars. */
const PRODUCT = String.raw`(?:asMicros\()?([\d_]+(?: \* (?:[\d_]+|MICROS_PER_DOLLAR))*)`;

/** PostgreSQL's default, less `superuser_reserved_connections` and the two with which a worker makes partitions. */
const DEFAULT_CONNECTIONS = 100 - 3 - 2;
const WORDS = ['no', 'one', 'two', 'three', 'four', 'five'];

describe('docs/limits.md', () => {
  const rows = read('docs/limits.md')
    .split('\n')
    .filter((line) => /^\| (?!Limit |-)/.test(line))
    .map((line): Row => {
      const [limit = '', figure = '', , setBy = '', test = ''] = line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim());
      return { limit, figure, setBy, test: test.replaceAll('`', '') };
    });
  const settings = read('docs/settings.md');

  it('has the figures of the code and of the settings', () => {
    assert.ok(rows.length > 50);
    const wrong = rows
      .filter(({ setBy }) => !SET_ELSEWHERE.includes(setBy))
      .filter(({ figure, setBy }) => figureOf(figure, setBy) !== valueOf(setBy))
      .map(({ limit, figure, setBy }) => `${limit}: ${figure}, but ${valueOf(setBy)}`);
    assert.deepEqual(wrong, []);
  });

  it('names a test of each limit', () => {
    assert.deepEqual(
      rows.filter(({ test }) => !test.startsWith('test/') || !existsSync(join(ROOT, test))),
      [],
    );
  });

  it('names a test of each setting that sets it', () => {
    const bySetting = rows.filter(({ setBy }) => /^`\w+`$/.test(setBy));
    assert.ok(bySetting.length > 5);
    assert.deepEqual(
      bySetting.filter(({ setBy, test }) => !read(test).includes(setBy.replaceAll('`', ''))),
      [],
    );
  });

  function valueOf(setBy: string): number {
    const [, name = '', path] = /^`([\w.]+)`(?: in `(.+)`)?$/.exec(setBy) ?? [];
    const found =
      path === undefined
        ? new RegExp(`^\\| \`${name}\` +\\| \`(\\d+)\``, 'm').exec(settings)
        : constantIn(read(path), name);
    return product(found?.[1] ?? '');
  }
});

describe('the connections to PostgreSQL', () => {
  const ofPool = (name: string) => figure('src/processes/api-pools.ts', `${name}.maxPoolSize`);
  const ofLane = (name: string) => figure('src/charging/limits.ts', name);
  const ofConsole = (use: string) => figure('src/console/pool.ts', `CONNECTIONS.${use}`);

  /** The type names every pool of an API process, so a pool that is added must be added here. */
  function poolsOf(
    lanes: string,
  ): Readonly<Record<keyof ApiPools | keyof Console['pools'], number>> {
    const charges = ofLane(`LANES.${lanes}`) + ofLane('EXCEPTION_LANES');
    return {
      database: ofPool('READS'),
      lookUps: ofPool('LOOK_UPS'),
      invocations: ofPool('INVOCATIONS'),
      charges,
      holds: charges,
      leases: ofLane('LEASE_LANES'),
      console: ofConsole('library'),
      consoleCounts: ofConsole('counts'),
    };
  }

  const pools = poolsOf('alone');
  const besideOthers = poolsOf('besideOthers');
  const api = sum(pools);
  const shared = sum(besideOthers);
  const worker = figure('src/processes/worker.ts', 'DATABASE_CONNECTIONS');

  it('fit into those of the start, with some to spare, for any number of API processes', () => {
    for (const count of [1, 2, 4, 64]) {
      const needed = (count === 1 ? api : shared * count) + worker;
      const allowed = connectionsMax(count);
      assert.ok(allowed >= needed + 20, `${count}: ${allowed} for ${needed}`);
    }
  });

  for (const [path, claims] of Object.entries({
    'docs/limits.md': [
      `Each API process has ${pools.database} connections for reads, ${pools.lookUps} for keys and prices, ` +
        `${pools.invocations} for invocations, ${pools.console + pools.consoleCounts} for the console, ` +
        `${pools.leases} for leases, and ${besideOthers.charges} or ${pools.charges} each for charges and holds. ` +
        `A worker has ${worker}.`,
    ],
    'docs/scale.md': [
      `| \`api\` | ${api}, or ${shared} with \`SHARE_PORT\` |`,
      `| \`worker\` | ${worker}; two more for a moment, when it makes partitions |`,
      `above ${api} for each API process and ${worker} for each worker`,
      `that is ${WORDS[Math.floor((DEFAULT_CONNECTIONS - worker) / api)]} API processes and a worker`,
    ],
    'deploy/kubernetes/api.yaml': [
      `up to ${api} connections to PostgreSQL and each worker ${worker}: \`maxReplicas\` times ${api},`,
    ],
    'docs/decisions/0025-fair-shares-and-lanes-for-exceptions.md': [`up to ${api} connections`],
  })) {
    it(`are as many as ${path} says`, () => {
      const text = read(path).replaceAll(/\s+(?:# )?/g, ' ');
      assert.deepEqual(
        claims.filter((claim) => !text.includes(claim)),
        [],
      );
    });
  }
});

/** In the unit of the constant: bytes, milliseconds, seconds or micro-dollars. */
function figureOf(figure: string, setBy: string): number {
  const [, dollar, digits = '', unit = ''] = /^(\$?)([\d,.]+) ?(\w*)$/.exec(figure) ?? [];
  const value = Number(digits.replaceAll(',', '')) * (UNITS[unit] ?? Number.NaN);
  if (dollar) return Math.round(value * MICROS);
  return /_SECONDS/.test(setBy) ? value / 1_000 : value;
}

/** `NAME`, or `NAME.member` of an object. */
function constantIn(code: string, name: string): RegExpExecArray | null {
  const [constant = '', member] = name.split('.');
  const pattern =
    member === undefined
      ? `const ${constant} = ${PRODUCT}`
      : `const ${constant} = \\{[^}]*${member}: ${PRODUCT}`;
  return new RegExp(pattern).exec(code);
}

/** A constant of a file. */
function figure(path: string, name: string): number {
  return product(constantIn(read(path), name)?.[1] ?? '');
}

function sum(figures: Readonly<Record<string, number>>): number {
  return Object.values(figures).reduce((left, right) => left + right, 0);
}

function product(text: string): number {
  return text
    .replace('MICROS_PER_DOLLAR', String(MICROS))
    .split(' * ')
    .map((factor) => (factor === '' ? Number.NaN : Number(factor.replaceAll('_', ''))))
    .reduce((left, right) => left * right, 1);
}
