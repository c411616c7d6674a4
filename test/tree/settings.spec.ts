/** docs/settings.md against the code: it lists every setting that is read, and no other. */
import assert from 'node:assert/strict';
import { read, writtenFiles } from './sources.ts';

/** Set by the command line, the system or npm, not by users of Farebox. */
const NOT_SETTINGS = ['PGAPPNAME', 'PATH', 'HOME', 'XDG_CACHE_HOME'];
/** Read by the packages of OpenTelemetry: test/tracing. */
const READ_BY_PACKAGES = ['OTEL_SERVICE_NAME', 'OTEL_RESOURCE_ATTRIBUTES'];
const LITERAL = /\benv\['([A-Z_]+)'\]|\benv,\s*'([A-Z_]+)'|\.env\(\s*'([A-Z_]+)',?\s*\)/g;

describe('docs/settings.md', () => {
  const text = read('docs/settings.md');
  const documented = [...text.matchAll(/^\| `([A-Z_]+)`/gm)].map(([, name = '']) => name);

  it('lists every setting that config.ts reads', () => {
    const readers = ['src/config.ts', 'src/read-setting.ts', 'src/refuse-unsafe.ts'];
    assert.deepEqual(missingFrom(documented, readers.map(read).join('\n')), []);
  });

  it('is compared with every reader, also with one that takes several lines', () => {
    for (const reader of [
      "env['A_B']",
      "integer(env, 'A_B', 1)",
      "integer(\n  env,\n  'A_B',\n  1)",
      ".env(\n  'A_B',\n)",
    ]) {
      assert.deepEqual(missingFrom([], reader), ['A_B']);
    }
  });

  it('lists every setting that the start and the commands read', () => {
    const code = writtenFiles()
      .filter((path) => /^src\/(embedded|commands)\/|^src\/cli\.ts$/.test(path))
      .map(read)
      .join('\n');
    assert.deepEqual(missingFrom(documented, code), []);
  });

  it('lists each once, and none that nothing reads', () => {
    assert.equal(new Set(documented).size, documented.length);
    const code = writtenFiles()
      .filter((path) => path.startsWith('src/') || path.startsWith('client/'))
      .map(read)
      .join('\n');
    assert.deepEqual(
      documented.filter(
        (name) =>
          !code.includes(`'${name}'`) &&
          !code.includes(`.${name}`) &&
          !READ_BY_PACKAGES.includes(name),
      ),
      [],
    );
  });

  it('lists every setting of .env.example except those of docker-compose.yml alone', () => {
    const listed = [...read('.env.example').matchAll(/^([A-Z_]+)=/gm)].map(([, name = '']) => name);
    const ofCompose = [
      'POSTGRES_PASSWORD',
      'FAREBOX_POSTGRES_PASSWORD',
      'TEMPORAL_POSTGRES_PASSWORD',
      'PUBLIC_ADDRESS',
      'POSTGRES_PORT',
      'TEMPORAL_PORT',
      'TEMPORAL_UI_PORT',
    ];
    assert.deepEqual(
      listed.filter((name) => !documented.includes(name) && !ofCompose.includes(name)),
      [],
    );
  });
});

function missingFrom(documented: readonly string[], code: string): string[] {
  const names = [...code.matchAll(LITERAL)].map(([, a, b, c]) => a ?? b ?? c ?? '');
  return [...new Set(names)].filter(
    (name) => !documented.includes(name) && !NOT_SETTINGS.includes(name),
  );
}
