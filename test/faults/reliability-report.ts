/** `docs/reliability.md`: a section for each long run, written by the run itself, which replaces its earlier one. */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const FILE = join(import.meta.dirname, '../../docs/reliability.md');
const OPENING = `# Reliability

Seeds, counts and results of the last long runs. Each run replaces its own section; do not edit them by hand.
[CONTRIBUTING.md](../CONTRIBUTING.md#run-and-test) lists the commands.
`;

const run = promisify(execFile);

export interface RunReport {
  /** The heading of its section. */
  readonly title: string;
  readonly command: string;
  readonly seed: number;
  readonly startedAt: Date;
  /** Markdown: what was done and what came out. */
  readonly body: string;
}

export async function writeRunReport(report: RunReport): Promise<void> {
  const old = await readFile(FILE, 'utf8').catch(() => OPENING);
  await writeFile(FILE, withSection(old, report.title, await sectionOf(report)));
  await run('oxfmt', [FILE]);
}

/** Puts the section in place of the one with its title, or at the end. */
export function withSection(document: string, title: string, section: string): string {
  const [opening = '', ...sections] = document.split(/^(?=## )/m);
  const isOld = (each: string) => each.startsWith(`## ${title}\n`);
  const kept = sections.some(isOld)
    ? sections.map((each) => (isOld(each) ? section : each))
    : [...sections, section];
  return [opening, ...kept].map((each) => each.trim()).join('\n\n') + '\n';
}

export function table(columns: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const lines = [columns, columns.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.map(String).join(' | ')} |`).join('\n');
}

async function sectionOf({ title, command, seed, startedAt, body }: RunReport): Promise<string> {
  const minutes = ((Date.now() - startedAt.getTime()) / 60_000).toFixed(1);
  const commit = (await run('git', ['rev-parse', '--short', 'HEAD'])).stdout.trim();
  return `## ${title}

\`${command}\`, seed ${seed}, at commit \`${commit}\`, on ${startedAt.toISOString().slice(0, 16).replace('T', ' ')} UTC:
${minutes} minutes on ${cpus().length} cores.

${body.trim()}
`;
}
