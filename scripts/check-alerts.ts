/**
 * `npm run check:alerts`: promtool checks deploy/alerts.yml and the queries of the dashboard, and runs the tests in
 * test/metrics/alerts; then shows that these notice each alert that never comes, and each that always does. Builds
 * promtool, which needs Go and takes minutes the first time; `-- --promtool /usr/bin/promtool` uses another,
 * such as that of Debian's package `prometheus`.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { ROOT } from '../src/root.ts';
import { buildGoPrograms } from './go-programs.ts';

const TESTS = 'test/metrics/alerts';
const PROGRAM = 'github.com/prometheus/prometheus/cmd/promtool@v0.316.0';

interface Rule {
  readonly alert?: string;
  readonly expr: string;
  readonly for?: string;
}

const run = promisify(execFile);
const { values } = parseArgs({ options: { promtool: { type: 'string' } } });
const promtool = values.promtool ?? join(await buildGoPrograms([PROGRAM]), 'promtool');
const alerts = await readFile(join(ROOT, 'deploy/alerts.yml'), 'utf8');
const { rules } = (parse(alerts) as { groups: [{ rules: Rule[] }] }).groups[0];
const testFiles = await readdir(join(ROOT, TESTS));
const folder = await mkdtemp(join(tmpdir(), 'farebox-alerts-'));
try {
  await check(rules);
  await check(await dashboardRules());
  for (const name of testFiles) {
    const tests = await readFile(join(ROOT, TESTS, name), 'utf8');
    await writeFile(join(folder, name), tests.replace('../../../deploy/alerts.yml', 'rules.yml'));
  }
  await check(rules);
  await test();
  for (const rule of rules) {
    for (const [name, wrong] of Object.entries(mistakesIn(rule))) {
      await check(rules.map((each) => (each === rule ? wrong : each)));
      await assert.rejects(test(), { stderr: /FAILED/ }, `no test notices ${rule.alert}: ${name}`);
    }
  }
} finally {
  await rm(folder, { recursive: true });
}
process.stdout.write(`${rules.length} alerts: each is tested\n`);

/** Writes the rules for the tests, too. */
async function check(these: readonly object[]): Promise<void> {
  const file = join(folder, 'rules.yml');
  await writeFile(file, stringify({ groups: [{ name: 'farebox', rules: these }] }));
  await run(promtool, ['check', 'rules', '--lint=all', '--lint-fatal', file]);
}

/** All files at once. A mistake ends with the first that notices it, because days.yml takes twenty seconds. */
async function test(): Promise<void> {
  const over = new AbortController();
  const tests = testFiles.map((name) =>
    run(promtool, ['test', 'rules', join(folder, name)], { signal: over.signal }),
  );
  try {
    await Promise.all(tests);
  } finally {
    over.abort();
  }
}

function mistakesIn(rule: Rule): Record<string, Rule> {
  const { for: duration, ...atOnce } = rule;
  return {
    'never comes': { ...rule, expr: `${rule.expr} unless on () vector(1)` },
    'always comes': { ...rule, expr: rule.expr.replace(/(?:>|==) [\d. *]+$/, '>= 0') },
    ...(duration && { 'comes at once': atOnce }),
  };
}

/** As rules that record, because promtool reads no dashboards. */
async function dashboardRules(): Promise<object[]> {
  const text = await readFile(join(ROOT, 'deploy/grafana-dashboard.json'), 'utf8');
  const { panels } = JSON.parse(text) as { panels: { readonly targets: Rule[] }[] };
  const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  return queries.map((expr, n) => ({
    record: `farebox:query_${n}`,
    expr: expr.replaceAll('$__rate_interval', '5m'),
  }));
}
