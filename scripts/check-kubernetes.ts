/**
 * `npm run check:kubernetes`: renders deploy/kubernetes with kustomize and checks it by kubeconform against
 * the API of a Kubernetes release, unknown members included; then shows that a mistake in each resource is
 * found. Needs Go, which builds both programs, and its module proxy, which has the API's description.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { parseAllDocuments, stringify } from 'yaml';
import { ROOT } from '../src/root.ts';
import { buildGoPrograms } from './go-programs.ts';

const PROGRAMS = [
  'github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0',
  'sigs.k8s.io/kustomize/kustomize/v5@v5.7.1',
];
const KUBERNETES = 'k8s.io/kubernetes@v1.34.2';
const OUTPUT_BYTES_MAX = 2 ** 24;

const run = promisify(execFile);

interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly 'x-kubernetes-group-version-kind'?: readonly {
    readonly group: string;
    readonly version: string;
    readonly kind: string;
  }[];
}

interface Resource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly spec?: object;
}

const programs = await buildGoPrograms(PROGRAMS);
const { stdout: rendered } = await run(
  join(programs, 'kustomize'),
  ['build', join(ROOT, 'deploy/kubernetes')],
  { maxBuffer: OUTPUT_BYTES_MAX },
);
const resources = parseAllDocuments(rendered).map((each) => each.toJS() as Resource);
const schemas = await mkdtemp(join(tmpdir(), 'farebox-kubernetes-'));
try {
  await writeSchemas();
  const { code, output } = await kubeconform(rendered);
  process.stdout.write(output);
  assert.equal(code, 0);
  for (const resource of resources.filter(({ spec }) => spec !== undefined)) {
    const mistaken = { ...resource, spec: { ...resource.spec, aMemberThatNobodyKnows: 1 } };
    assert.notEqual((await kubeconform(stringify(mistaken))).code, 0, resource.kind);
  }
} finally {
  await rm(schemas, { recursive: true });
}

/** A file for each kind of our resources, named as kubeconform names it. */
async function writeSchemas(): Promise<void> {
  const { stdout } = await run('go', ['mod', 'download', '-json', KUBERNETES], { cwd: tmpdir() });
  const { Dir } = JSON.parse(stdout) as { Dir: string };
  const file = join(Dir, 'api/openapi-spec/swagger.json');
  const { definitions: described } = JSON.parse(await readFile(file, 'utf8')) as {
    definitions: Record<string, Schema>;
  };
  const definitions = closed(described);
  for (const { apiVersion, kind } of resources) {
    const [name] =
      Object.entries(described).find(([, schema]) =>
        schema['x-kubernetes-group-version-kind']?.some(
          (each) =>
            each.kind === kind &&
            [each.group, each.version].filter(Boolean).join('/') === apiVersion,
        ),
      ) ?? assert.fail(`Kubernetes has no ${apiVersion} ${kind}`);
    const suffix = apiVersion.replace(/^([^./]+)[^/]*\//, '$1-');
    const schema = { $ref: `#/definitions/${name}`, definitions };
    await writeFile(join(schemas, `${kind}-${suffix}.json`.toLowerCase()), JSON.stringify(schema));
  }
}

/** Unknown members are mistakes, and some strings may be numbers. */
function closed(described: Readonly<Record<string, Schema>>): Record<string, object> {
  const close = (schema: Schema): object => {
    if (schema.format === 'int-or-string') return { type: ['string', 'integer'] };
    const { properties } = schema;
    if (!properties) return schema;
    const members = Object.entries(properties).map(([name, member]) => [name, close(member)]);
    return { ...schema, properties: Object.fromEntries(members), additionalProperties: false };
  };
  return Object.fromEntries(
    Object.entries(described).map(([name, schema]) => [name, close(schema)]),
  );
}

async function kubeconform(manifests: string): Promise<{ code: number | null; output: string }> {
  const location = join(schemas, '{{ .ResourceKind }}{{ .KindSuffix }}.json');
  const args = ['-strict', '-summary', '-verbose', '-schema-location', location, '-'];
  const child = spawn(join(programs, 'kubeconform'), args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  child.stdin.end(manifests);
  return { output: await text(child.stdout), code: await exited };
}
