/**
 * The commands that the documentation prints, against the command line: each exists, with its options and
 * their values. And the sections of the documentation that messages name.
 */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { Command, type Option } from 'commander';
import { read, ROOT, writtenFiles } from './sources.ts';

const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'ARCHITECTURE.md',
  ...globSync('docs/**/*.md', { cwd: ROOT }),
];
/** In a block, or between backticks, as far as the next one or what the shell does with the output. */
const PRINTED = /\bbin\/farebox ([a-z](?:<[^>\n]*>|[^`|>;&#)\n])*)/g;
/** `'Research agent'` is one word. */
const WORD = /'[^']*'|"[^"]*"|[^\s'"]+/g;
/** Stands for something that a reader fills in. */
const PLACEHOLDER = /[<>$]|\.\.\./;

type Registering = { register(command: Command): void };

describe('a command that the documentation prints', () => {
  let program: Command;

  before(async () => {
    const listed = read('src/cli.ts').matchAll(
      /^ {2}'?([\w-]+)'?: \{[^}]*?import\('\.\/commands\/(\S+)'\)/gms,
    );
    program = new Command();
    for (const [, name = '', file = ''] of listed) {
      const module = (await import(`../../src/commands/${file}`)) as Registering;
      module.register(program.command(name));
    }
    assert.ok(program.commands.length > 10);
  });

  for (const page of PAGES) {
    const printed = new Set([...read(page).matchAll(PRINTED)].map(([, text = '']) => text.trim()));
    // Any program runs under `exec`.
    for (const text of [...printed].filter((each) => !each.startsWith('exec'))) {
      it(`exists: ${text} (${page})`, () => check(program, text.match(WORD) ?? []));
    }
  }

  it('runs TypeScript by `bin/farebox exec`, which brings a Node that can', () => {
    const bare = PAGES.flatMap(
      (page) => read(page).match(/.*(?<!exec )\bnode [\w/.-]+\.ts.*/g) ?? [],
    );
    assert.deepEqual(bare, []);
  });
});

describe('a section that a message names', () => {
  const SECTION = /see "([^"]+)" in (docs\/[\w-]+\.md)/g;
  const named = writtenFiles()
    .filter((path) => path.startsWith('src/'))
    .flatMap((path) => [...read(path).matchAll(SECTION)]);

  it('is on its page', () => {
    assert.ok(named.length > 0);
    for (const [text, title, page = ''] of named) {
      assert.match(read(page), new RegExp(`^#+ ${title}$`, 'm'), text);
    }
  });
});

function check(program: Command, words: readonly string[]): void {
  let command = program;
  for (const [index, word] of words.entries()) {
    const found = command.commands.find((each) => each.name() === word);
    if (found) command = found;
    else if (command === program) assert.fail(`there is no command ${word}`);
    if (word.startsWith('--')) checkOption(command, word, words[index + 1]);
  }
  const isUsable = command.commands.length === 0 || words.length <= depthOf(command);
  assert.ok(isUsable, `${command.name()} has no such subcommand`);
}

function depthOf(command: Command): number {
  return command.parent ? 1 + depthOf(command.parent) : 0;
}

function checkOption(command: Command, word: string, value: string | undefined): void {
  const option: Option | undefined = command.options.find(({ long }) => long === word);
  assert.ok(option, `${command.name()} has no option ${word}`);
  if (!option.required || value === undefined || PLACEHOLDER.test(value)) return;
  // Throws what a user would be told.
  option.parseArg?.(value.replaceAll(/^['"]|['"]$/g, ''), undefined as never);
}
