/**
 * The rooms of ARCHITECTURE.md and the arrows between them: what may import what. An arrow that is
 * not in the table is an error, so that a new one is a decision and not an accident.
 */
import assert from 'node:assert/strict';
import { importsOf, read, writtenFiles, type Import } from './sources.ts';

/** Rooms that a room may import besides itself, types included. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'src/domain': [],
  'src/root.ts': [],
  'src/give-up-after.ts': [],
  'src/remembered.ts': [],
  'src/read-setting.ts': ['src/domain'],
  'src/refuse-unsafe.ts': ['src/read-setting.ts'],
  'src/config.ts': ['src/domain', 'src/read-setting.ts', 'src/refuse-unsafe.ts'],
  'src/secret-files.ts': ['src/read-setting.ts'],
  'src/tracing': ['src/config.ts'],
  'src/schemas': ['src/domain'],
  'src/store': ['src/root.ts', 'src/give-up-after.ts', 'src/domain', 'src/tracing'],
  'src/egress': [],
  'src/mail': ['src/remembered.ts', 'src/config.ts', 'src/domain', 'src/store'],
  'src/events': ['src/domain', 'src/egress', 'src/store'],
  'src/agents': ['src/domain', 'src/egress'],
  'src/stripe': ['src/config.ts', 'src/give-up-after.ts', 'src/domain', 'src/store', 'src/tracing'],
  'src/signing': ['src/domain'],
  'src/charging': ['src/domain', 'src/schemas', 'src/signing', 'src/store', 'src/tracing'],
  'src/temporal': [
    'src/root.ts',
    'src/give-up-after.ts',
    'src/config.ts',
    'src/domain',
    'src/store',
    'src/tracing',
    'workflows',
  ],
  'src/top-ups': ['src/domain', 'src/store', 'src/temporal'],
  'src/invocations': ['src/give-up-after.ts', 'src/store', 'src/temporal'],
  'src/console': [
    'src/remembered.ts',
    'src/config.ts',
    'src/domain',
    'src/mail',
    'src/signing',
    'src/store',
  ],
  'src/http': [
    'src/root.ts',
    'src/give-up-after.ts',
    'src/remembered.ts',
    'src/config.ts',
    'src/console',
    'src/domain',
    'src/schemas',
    'src/store',
    'src/egress',
    'src/charging',
    'src/signing',
    'src/temporal',
    'src/stripe',
    'src/top-ups',
    'src/invocations',
    'src/events',
    'src/tracing',
  ],
  'src/metrics': ['src/charging', 'src/http', 'src/mail', 'src/store'],
  'src/embedded': ['src/root.ts', 'src/domain'],
  workflows: ['src/domain'],
  activities: ['src/domain', 'src/store', 'src/stripe', 'src/agents', 'src/events', 'src/mail'],
  simulator: [],
  client: [],
  examples: [],
  console: ['src/domain'],
};
/** Workflows name activities by their types; at run time Temporal stands between them. */
const MAY_IMPORT_TYPES: Readonly<Record<string, readonly string[]>> = {
  workflows: ['activities'],
  // The console shows the API's replies.
  console: ['src/schemas'],
};
/** They put the rooms together, so they see all of them. */
const SEES_ALL = ['src/processes', 'src/cli.ts', 'src/commands', 'scripts', 'test', 'bench'];

/** Packages that only these rooms may use. A line shows where to look when the package changes. */
const PACKAGE_BELONGS_TO: Readonly<Record<string, readonly string[]>> = {
  slonik: ['src/store'],
  '@slonik/pg-driver': ['src/store'],
  'rate-limiter-flexible': ['src/http'],
  koa: ['src/http'],
  '@koa/router': ['src/http'],
  'csv-stringify': ['src/http'],
  'better-auth': ['src/console'],
  nodemailer: ['src/mail'],
  ...Object.fromEntries(
    [
      'api',
      'context-async-hooks',
      'core',
      'exporter-trace-otlp-http',
      'resources',
      'sdk-trace',
    ].map((name) => [`@opentelemetry/${name}`, ['src/tracing']]),
  ),
  pg: ['src/store', 'src/console', 'src/temporal', 'src/embedded'],
  stripe: ['src/stripe', 'activities', 'simulator'],
  undici: ['src/egress'],
  '@prometheus-io/client': ['src/metrics', 'src/processes'],
  '@modelcontextprotocol/client': ['src/agents', 'examples'],
  '@a2a-js/sdk': ['src/agents'],
  commander: ['src/commands', 'src/cli.ts'],
  '@temporalio/workflow': ['workflows'],
  '@temporalio/activity': ['activities'],
  '@temporalio/worker': ['src/temporal', 'src/processes'],
  '@temporalio/client': ['src/temporal', 'src/commands'],
  '@farebox/client': ['examples'],
};

/** Entry points, and the one place that reads settings when a command runs beside a start. */
const READS_ENVIRONMENT =
  /^(bin\/|bench\/|test\/|examples\/|client\/|src\/cli\.ts|src\/commands\/|src\/embedded\/environment\.ts|src\/embedded\/console-build\.ts|console\/vite\.config\.ts|simulator\/main\.ts)/;

describe('the rooms', () => {
  const files = writtenFiles().filter((path) => /\.(tsx?|js)$/.test(path));
  const imports = files.flatMap(importsOf);

  it('are all in the table', () => {
    assert.deepEqual(
      [...new Set(files.map(roomOf))].filter((room) => !isKnown(room)),
      [],
    );
  });

  it('import only what the table allows', () => {
    const wrong = imports.filter(({ from, to, isOurs, isType }) => {
      const room = roomOf(from);
      if (!isOurs || SEES_ALL.includes(room)) return false;
      const allowed = [
        room,
        ...(MAY_IMPORT[room] ?? []),
        ...(isType ? (MAY_IMPORT_TYPES[room] ?? []) : []),
      ];
      return !allowed.includes(roomOf(to));
    });
    assert.deepEqual(wrong.map(shown), []);
  });

  it('import everything that the table allows', () => {
    const made = new Set(imports.map(({ from, to }) => `${roomOf(from)} -> ${roomOf(to)}`));
    const arrows = Object.entries(MAY_IMPORT).flatMap(([from, rooms]) =>
      rooms.map((to) => `${from} -> ${to}`),
    );
    assert.deepEqual(
      arrows.filter((arrow) => !made.has(arrow)),
      [],
    );
  });

  it('have only these arrows in the diagram of ARCHITECTURE.md', () => {
    const shown = shownArrows();
    assert.ok(shown.length > 15);
    const wrong = shown.filter(
      ({ from, to }) => !SEES_ALL.includes(from) && !MAY_IMPORT[from]?.includes(to),
    );
    assert.deepEqual(wrong, []);
  });

  it('have no circle of files, types included', () => {
    assert.deepEqual(circlesOf(imports), []);
  });

  it('use packages only where they belong', () => {
    const wrong = imports.filter(({ from, to, isOurs, isType }) => {
      const owners = PACKAGE_BELONGS_TO[packageOf(to)];
      if (isOurs || isType || !owners || /^(test|bench)\//.test(from)) return false;
      return !owners.includes(roomOf(from));
    });
    assert.deepEqual(wrong.map(shown), []);
  });

  it('keep the domain free of packages, input and output, clocks and randomness', () => {
    const domain = files.filter((path) => roomOf(path) === 'src/domain');
    const wrong = domain.flatMap(importsOf).filter(({ isOurs }) => !isOurs);
    assert.deepEqual(wrong.map(shown), []);
    const impure =
      /\b(Date\.now|Date\(\)|performance\.|Math\.random|crypto\.|process\.|fetch\(|set(Timeout|Interval|Immediate))/;
    assert.deepEqual(
      domain.filter((path) => impure.test(read(path))),
      [],
    );
  });

  it('let workflows import only Temporal, themselves and the domain', () => {
    const wrong = imports.filter(
      ({ from, to, isOurs, isType }) =>
        roomOf(from) === 'workflows' && !isOurs && !isType && to !== '@temporalio/workflow',
    );
    assert.deepEqual(wrong.map(shown), []);
  });

  it('give the published client no dependency, not even a type', () => {
    const wrong = imports.filter(
      ({ from, to }) =>
        roomOf(from) === 'client' && roomOf(to) !== 'client' && !/^(node:|#)/.test(to),
    );
    assert.deepEqual(wrong.map(shown), []);
    // What `#` names is mapped here, and could be mapped to a package.
    const { imports: mapped } = JSON.parse(read('client/package.json')) as {
      imports: Record<string, Record<string, string>>;
    };
    const targets = Object.values(mapped).flatMap((byRuntime) => Object.values(byRuntime));
    assert.deepEqual(
      targets.filter((target) => !target.startsWith('./')),
      [],
    );
  });

  it('read the environment only in config.ts and where a process starts', () => {
    const wrong = files.filter(
      (path) => /\bprocess\.env\b/.test(code(path)) && !READS_ENVIRONMENT.test(path),
    );
    assert.deepEqual(wrong, []);
  });
});

/** `src/store/charges/post-charges.ts` is in `src/store`; `src/config.ts` is a room by itself. */
function roomOf(path: string): string {
  const [first = '', second = '', third] = path.split('/');
  if (first !== 'src') return first;
  return third === undefined ? path : `${first}/${second}`;
}

/** `better-auth/api` and `@a2a-js/sdk/client` are parts of packages. */
function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function isKnown(room: string): boolean {
  return room in MAY_IMPORT || SEES_ALL.includes(room) || room === 'bin';
}

/** The arrows between rooms that the diagram draws. A box may name several rooms, and a few files after a colon. */
function shownArrows(): readonly { readonly from: string; readonly to: string }[] {
  const [, diagram = ''] = /```mermaid\n([\s\S]*?)```/.exec(read('ARCHITECTURE.md')) ?? [];
  const labels = new Map(
    [...diagram.matchAll(/(\w+)\["([^":]+)/g)].map(([, id = '', label = '']) => [id, label]),
  );
  const roomsOf = (id: string) =>
    (labels.get(id) ?? id)
      .split(', ')
      .map((name) => (isKnown(`src/${name}`) ? `src/${name}` : name));
  return [...diagram.matchAll(/^ *(\w+)\S* --> (\w+)/gm)].flatMap(([, left = '', right = '']) =>
    roomsOf(left).flatMap((from) => roomsOf(right).map((to) => ({ from, to }))),
  );
}

/** A way from a file back to itself, for each file that closes one. */
function circlesOf(imports: readonly Import[]): readonly string[] {
  const next = Map.groupBy(
    imports.filter(({ isOurs }) => isOurs),
    ({ from }) => from,
  );
  const seen = new Set<string>();
  const way: string[] = [];
  const circles: string[] = [];
  const walk = (file: string) => {
    if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(' -> '));
    if (seen.has(file)) return;
    seen.add(file);
    way.push(file);
    for (const { to } of next.get(file) ?? []) walk(to);
    way.pop();
  };
  for (const file of next.keys()) walk(file);
  return circles;
}

function shown({ from, to }: Import): string {
  return `${from} -> ${to}`;
}

/** Without comments. */
function code(path: string): string {
  return read(path).replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
}
