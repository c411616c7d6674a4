/** The command line itself: help, version, exit codes, and what is said when nothing is running. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { farebox, ourProgram } from '../support/stack.ts';

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const SOURCE = join(import.meta.dirname, '../../src/cli.ts');
const NOWHERE = '/tmp/farebox-no-such-directory';

async function ended(...args: readonly string[]): Promise<Ended> {
  try {
    return { code: 0, stdout: await farebox(args, { env: {} }), stderr: '' };
  } catch (error) {
    return error as Ended;
  }
}

describe('farebox', () => {
  it('lists every command and the exit codes, without loading any of them', async () => {
    const { stdout } = await ended('--help');
    const loaded = [
      ...(await readFile(SOURCE, 'utf8')).matchAll(/=> import\('\.\/commands\/([\w-]+)\.ts/g),
    ];
    const commands = loaded.map(([, file]) => (file === 'refund-top-up' ? 'refund' : file));
    assert.ok(commands.includes('start'));
    for (const name of [...commands, 'exec']) {
      assert.match(stdout, new RegExp(`^  ${name} `, 'm'));
    }
    assert.match(stdout, /Exit codes:\n +0 +done/);
  });

  it('prints its version', async () => {
    const text = await readFile(join(import.meta.dirname, '../../package.json'), 'utf8');
    const { version } = JSON.parse(text) as { version: string };
    assert.equal((await ended('--version')).stdout, `${version}\n`);
  });

  it('explains a command with its arguments', async () => {
    assert.match((await ended('help', 'refund')).stdout, /^Usage: farebox refund .*<top-up>/);
  });

  it('does not call a change failed, nor the books wrong, when its output cannot be written', function () {
    if (process.platform !== 'linux') return this.skip();
    const full = openSync('/dev/full', 'w');
    try {
      for (const [code, ...args] of [
        [3, '--version'],
        [2, 'doctor', '--json', '--data-dir', NOWHERE],
      ] as const) {
        const stdio = ['ignore', full, 'pipe'] as const;
        const { status, stderr } = spawnSync(process.execPath, [ourProgram(), ...args], {
          stdio: [...stdio],
        });
        assert.equal(status, code, args.join(' '));
        assert.match(String(stderr), /^farebox: the output could not be written, .*ENOSPC.*\n$/);
      }
    } finally {
      closeSync(full);
    }
  });

  it('exits with 2 for wrong usage, and names the argument', async () => {
    const cases: readonly (readonly [RegExp, ...string[]])[] = [
      [/unknown command 'acount'\n\(Did you mean account\?\)/, 'acount'],
      [/unknown option '--jsn'/, 'doctor', '--jsn'],
      [
        /'abc' is invalid for argument 'dollars'\. It must be an amount such as 5 or -2\.50/,
        'account',
        'adjust',
        'a@example.com',
        'abc',
        '--reason',
        'none',
      ],
      [
        /argument 'dollars'.* not 0/,
        'account',
        'adjust',
        'a@example.com',
        '-0',
        '--reason',
        'none',
      ],
    ];
    const create = ['budget', 'create', 'a@example.com', '--name', 'n'] as const;
    // JavaScript takes these for a day in March, or in the order and the zone of this machine.
    const times: typeof cases = [
      [/must be a day/, 'budget', 'usage', 'bdg_x', '--from', '2026-02-30'],
      [/must be a time/, 'doctor', '--since', '2026-02-30'],
      [/must be a time in the future/, ...create, '--expires-at', '2999-02-30'],
      [/must be a time in the future/, ...create, '--expires-at', '5/4/2999'],
      [/must be a time in the future/, ...create, '--expires-at', '2999-04-05T12:00'],
      [/must be from \$0/, ...create, '--window', 'day:5:6'],
    ];
    for (const [said, ...args] of [...cases, ...times]) {
      const { code, stderr } = await ended(...args);
      assert.equal(code, 2, args.join(' '));
      assert.match(stderr, said);
    }
  });

  it('prints JSON when doctor or reconcile could not begin, if that was asked for', () => {
    const damage = `import { registerHooks } from 'node:module';
      registerHooks({ resolve: (name, context, next) => {
        if (/commands.(doctor|reconcile)\\.ts$/.test(name)) throw new Error('it is damaged');
        return next(name, context);
      } });`;
    const damaged = ['--import', `data:text/javascript,${encodeURIComponent(damage)}`, SOURCE];
    for (const [said, program, ...args] of [
      [/Unknown part bogus/, [ourProgram()], 'doctor', '--only', 'bogus'],
      [/unknown option '--since'/, [ourProgram()], 'reconcile', '--since', 'x'],
      [/it is damaged/, damaged, 'doctor'],
      [/it is damaged/, damaged, 'reconcile'],
    ] as const) {
      const { status, stdout } = spawnSync(process.execPath, [...program, ...args, '--json']);
      assert.equal(status, 2, args.join(' '));
      const { ok, error } = JSON.parse(String(stdout)) as { ok: null; error: { message: string } };
      assert.equal(ok, null);
      assert.match(error.message, said);
    }
  });

  it('says what is missing when nothing runs on the data directory', async () => {
    for (const command of [['env'], ['key', 'list', 'a@example.com'], ['migrate']]) {
      const { code, stderr } = await ended(...command, '--data-dir', NOWHERE);
      assert.equal(code, 1);
      assert.match(
        stderr,
        /^farebox: Farebox is not running on .*: start it with `npm start`, name/,
      );
    }
    const doctor = await ended('doctor', '--json', '--data-dir', NOWHERE);
    assert.equal(doctor.code, 2);
    assert.match(doctor.stdout, /"ok":null.*Farebox is not running/);
  });
});
