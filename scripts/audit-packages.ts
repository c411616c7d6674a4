/**
 * Asks the npm registry for known vulnerabilities of the packages that run in production, and fails if one is high or
 * critical. Some registries and mirrors do not answer this question: then it prints their error and passes, because
 * nothing is known. `--required`, for releases and CI with internet access, fails then too.
 */
import { execFile } from 'node:child_process';
import { parseArgs } from 'node:util';

interface Report {
  readonly metadata?: { readonly vulnerabilities: Readonly<Record<string, number>> };
  readonly vulnerabilities?: Readonly<
    Record<string, { readonly severity: string; readonly range: string }>
  >;
  readonly message?: string;
  readonly error?: { readonly summary?: string };
}

const TIMEOUT_MS = 60_000;
const REFUSED = ['high', 'critical'];

const { values } = parseArgs({ options: { required: { type: 'boolean', default: false } } });
const { stdout, stderr } = await audit();
const report = parsed(stdout);
if (!report?.metadata) {
  const detail = report?.message ?? report?.error?.summary ?? (stderr.trim() || 'no answer');
  console.warn(`Vulnerabilities were not checked, the registry did not tell: ${detail}`);
  if (values.required) process.exitCode = 1;
} else {
  const found = Object.entries(report.vulnerabilities ?? {});
  const refused = found.filter(([, { severity }]) => REFUSED.includes(severity));
  for (const [name, { severity, range }] of found) console.log(`${severity}: ${name} ${range}`);
  console.log(`${found.length} packages with known vulnerabilities, ${refused.length} refused`);
  if (refused.length > 0) process.exitCode = 1;
}

function audit(): Promise<{ stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    // npm's exit code says whether it found anything; its report says what.
    execFile(
      'npm',
      ['audit', '--omit=dev', '--package-lock-only', '--json'],
      { timeout: TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 },
      (_, stdout, stderr) => resolve({ stdout, stderr }),
    );
  });
}

function parsed(text: string): Report | undefined {
  try {
    return JSON.parse(text) as Report;
  } catch {
    return undefined;
  }
}
