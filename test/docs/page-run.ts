/**
 * Follows a page of the documentation as a reader would: its blocks in order, in one shell, against a running service.
 * A program that begins with the name of a file is stored, any other is run. What a block prints is compared
 * with the `json` or `text` block behind it.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { choosePort } from '../support/ports.ts';
import type { TestAccount } from '../support/accounts.ts';
import { ourProgram, until, type Environment } from '../support/stack.ts';
import { assertJson, assertLines, type Names } from './outputs.ts';
import { blocksOf, type Block } from './pages.ts';

const ROOT = join(import.meta.dirname, '../..');
/** The part of the repository that a reader has. */
const IN_REACH = ['node_modules', 'examples', 'package.json', '.env.example'];
/** By language: the file of a program without a name, and what runs it. */
const PROGRAMS: Readonly<Record<string, readonly [file: string, command: string]>> = {
  js: ['block.mjs', 'node block.mjs'],
  python: ['block.py', 'python block.py'],
};
/** Installing packages takes the longest. */
const BLOCK_TIMEOUT_MS = 300_000;

export interface PageRunOptions {
  readonly url: string;
  readonly account: TestAccount;
  readonly env: Environment;
  /** Runs when the page is done, while what it started still runs, and may continue in its shell. */
  readonly after?: (shell: (code: string) => Promise<string>) => Promise<void>;
}

/** Throws, with the page and line, where the page does not do what it says. */
export async function followPage(
  page: string,
  folder: string,
  options: PageRunOptions,
): Promise<void> {
  await using run = await PageRun.start(join(folder, page.replaceAll('/', '-')), options);
  for (const block of await blocksOf(page)) {
    await run.follow(block).catch((error: unknown) => {
      throw new Error(`${page}:${block.line}: ${(error as Error).message}`, { cause: error });
    });
  }
  run.end();
  await options.after?.((code) => run.shell(code));
}

class PageRun implements AsyncDisposable {
  readonly #folder: string;
  readonly #env: Environment;
  /** What stands in the page, and what it is here. */
  readonly #names: Names;
  readonly #port: number;
  readonly #groups: number[] = [];
  #output: { text: string; isChecked: boolean } | undefined;

  private constructor(folder: string, env: Environment, names: Names, port: number) {
    this.#folder = folder;
    this.#env = env;
    this.#names = names;
    this.#port = port;
  }

  static async start(folder: string, { url, account, env }: PageRunOptions): Promise<PageRun> {
    await mkdir(folder);
    for (const name of IN_REACH) await symlink(join(ROOT, name), join(folder, name));
    // test/embedded runs bin/farebox itself, which takes the commands from the source, and more CPU time.
    await mkdir(join(folder, 'bin'));
    const command = `#!/bin/sh\nexec node '${ourProgram()}' "$@"\n`;
    await writeFile(join(folder, 'bin/farebox'), command, { mode: 0o755 });
    const port = await choosePort();
    const names = new Map([
      ['http://127.0.0.1:8080', url],
      ['fare_sk_live_...', account.developerKey],
      ['fare_ck_live_...', account.consumerKey],
      ['you@example.com', account.email],
      // One program of a page listens, on either: the receiver must not meet the tool of the quickstart.
      ['3000', String(port)],
      ['3001', String(port)],
    ]);
    const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
    const keys = {
      FAREBOX_URL: url,
      FAREBOX_SECRET_KEY: account.developerKey,
      FAREBOX_CONSUMER_KEY: account.consumerKey,
    };
    return new PageRun(folder, { PATH, HOME, NODE_COMPILE_CACHE, ...env, ...keys }, names, port);
  }

  /** Ends what the page left running. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const group of this.#groups) {
      try {
        process.kill(-group, 'SIGKILL');
      } catch {
        // It has ended by itself.
      }
    }
    await rm(this.#folder, { recursive: true, force: true });
  }

  async follow({ language, code, notRunBecause }: Block): Promise<void> {
    if (notRunBecause !== undefined) {
      this.#output = undefined;
    } else if (language === 'sh' || PROGRAMS[language]) {
      this.#assertNoError();
      await this.#do(language, this.#withIds(this.#translate(code)));
    } else if (this.#output && ['json', 'text'].includes(language)) {
      this.#compare(language, code);
    } else if (language === 'json') JSON.parse(code);
    else assert.fail(`nothing is known of a block of "${language}" here`);
  }

  /** An answer that is an error, and that the page says nothing of. */
  #assertNoError(): void {
    if (this.#output?.isChecked === false) assert.doesNotMatch(this.#output.text, /^\{"error":/m);
  }

  end(): void {
    this.#assertNoError();
  }

  #translate(code: string): string {
    let translated = code;
    for (const [shown, here] of this.#names) translated = translated.replaceAll(shown, here);
    return translated;
  }

  /** Puts the id that the page has shown last in place of `bdg_...`, as a reader does. */
  #withIds(code: string): string {
    return code.replaceAll(/\b([a-z]+_)\.\.\.(?=\W)/g, (dots, prefix: string) => {
      const shown = [...this.#names].filter(([name]) => /^[a-z]+_[0-9a-f]{32}$/.test(name));
      return shown.findLast(([name]) => name.startsWith(prefix))?.[1] ?? dots;
    });
  }

  async #do(language: string, code: string): Promise<void> {
    this.#output = undefined;
    let command = code;
    const program = PROGRAMS[language];
    if (program) {
      const [, file] = /^(?:\/\/|#) ([\w-]+\.(?:m?js|py))\n/.exec(code) ?? [];
      await writeFile(join(this.#folder, file ?? program[0]), code);
      if (file !== undefined) return;
      command = program[1];
    }
    const text = await this.shell(command);
    this.#output = { text, isChecked: false };
  }

  /** Gives what the code prints. */
  async shell(code: string): Promise<string> {
    // The exported variables of one block are those of the next.
    const script = `[ ! -f .state ] || . ./.state\nset -eu -o pipefail\n${code}\nexport -p > .state`;
    // A new file: a program that an earlier block left running still writes into its own.
    await rm(join(this.#folder, '.output'), { force: true });
    const log = await open(join(this.#folder, '.output'), 'w');
    const shell = spawn('bash', ['-c', script], {
      cwd: this.#folder,
      env: this.#env,
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    });
    this.#groups.push(shell.pid ?? assert.fail('no shell'));
    const signal = AbortSignal.timeout(BLOCK_TIMEOUT_MS);
    const [status] = (await once(shell, 'exit', { signal })) as [number];
    await log.close();
    const text = await readFile(join(this.#folder, '.output'), 'utf8');
    assert.equal(status, 0, `${code}\n${text}`);
    if (/ &$/m.test(code)) await until(() => isOpen(this.#port));
    return text;
  }

  #compare(language: string, shown: string): void {
    const output = this.#output ?? assert.fail();
    output.isChecked = true;
    const translated = this.#translate(shown);
    if (language === 'text') return assertLines(output.text, translated);
    return assertJson(JSON.parse(output.text), JSON.parse(translated), this.#names);
  }
}

function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  }).finally(() => socket.destroy()) as Promise<boolean>;
}
