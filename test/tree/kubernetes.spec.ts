/** deploy/kubernetes: mistakes that a cluster would accept, or report only when a pod starts. */
import assert from 'node:assert/strict';
import { parse, parseAllDocuments } from 'yaml';
import { readConfig } from '../../src/config.ts';
import { SECRET_SETTINGS } from '../../src/secret-files.ts';
import { read } from './sources.ts';

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

interface Container {
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly readinessProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly startupProbe?: Probe;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly env?: readonly object[];
  readonly securityContext: object;
}

interface Resource {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly template?: {
      readonly metadata: { readonly labels: object };
      readonly spec: {
        readonly containers: readonly [Container];
        readonly securityContext: object;
      };
    };
    readonly selector?: { readonly matchLabels?: object };
    readonly ports?: readonly { readonly targetPort: string }[];
    readonly scaleTargetRef?: { readonly name: string };
  };
}

interface Kustomization {
  readonly resources: readonly string[];
  readonly images: readonly { readonly name: string; readonly newTag: string }[];
  readonly configMapGenerator: readonly {
    readonly name: string;
    readonly literals: readonly string[];
  }[];
}

describe('deploy/kubernetes', () => {
  const kustomization = parse(read('deploy/kubernetes/kustomization.yaml')) as Kustomization;
  const resources = kustomization.resources.flatMap((path) =>
    parseAllDocuments(read(`deploy/kubernetes/${path}`)).map((each) => each.toJS() as Resource),
  );
  const pods = new Map(
    resources.flatMap(({ metadata, spec: { template } }) =>
      template ? [[metadata.name, template] as const] : [],
    ),
  );
  const settings = Object.fromEntries(
    (kustomization.configMapGenerator[0]?.literals ?? []).map((line): [string, string] => {
      const at = line.indexOf('=');
      return [line.slice(0, at), line.slice(at + 1)];
    }),
  );
  const named = (kind: string) =>
    resources.filter((each) => each.kind === kind).map(({ metadata }) => metadata.name);

  it('has the API, the worker, the migration, a place for commands and what keeps them available', () => {
    assert.deepEqual(
      [...pods.keys()],
      ['farebox-migrate', 'farebox-api', 'farebox-worker', 'farebox-commands'],
    );
    assert.deepEqual(named('Job'), ['farebox-migrate']);
    assert.deepEqual(named('PodDisruptionBudget'), ['farebox-api', 'farebox-worker']);
    assert.deepEqual(named('HorizontalPodAutoscaler'), ['farebox-api']);
  });

  it('migrates with everything but the API and the workers, which exit before the schema is at their release', () => {
    const [, key = '', names = ''] =
      /--selector '(\S+) notin \(([^)]+)\)'/.exec(read('docs/operations.md')) ?? [];
    const excluded = names.split(', ');
    const waiting = resources.filter(({ metadata }) =>
      excluded.includes(metadata.labels?.[key] ?? ''),
    );
    assert.deepEqual(
      waiting.map(({ kind, metadata }) => `${kind} ${metadata.name}`),
      ['Deployment farebox-api', 'Deployment farebox-worker'],
    );
  });

  it('runs existing commands of this release', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    assert.deepEqual(kustomization.images, [{ name: 'farebox', newTag: version }]);
    for (const [name, { spec }] of pods) {
      const [{ image, command, args = [] }] = spec.containers;
      assert.equal(image, 'farebox');
      if (name === 'farebox-commands') {
        assert.deepEqual([command, args], [['sleep', 'infinity'], []]);
        continue;
      }
      assert.equal(command, undefined);
      assert.deepEqual(args, [name.replace('farebox-', '')]);
      assert.match(read('src/cli.ts'), new RegExp(`^ {2}${args[0]}: `, 'm'));
    }
  });

  it('opens the ports of its settings, and probes paths that are served there', () => {
    const ports: Readonly<Record<string, number>> = {
      http: Number(settings['PORT']),
      metrics: Number(settings['METRICS_PORT']),
    };
    const served = {
      http: read('src/http/app.ts'),
      metrics: read('src/metrics/serve-metrics.ts'),
    };
    for (const { spec } of pods.values()) {
      const [{ ports: opened = [], readinessProbe, livenessProbe, startupProbe, args = [] }] =
        spec.containers;
      for (const { name, containerPort } of opened) assert.equal(containerPort, ports[name]);
      const probes = [readinessProbe, livenessProbe, startupProbe].filter(
        (probe) => probe !== undefined,
      );
      assert.equal(probes.length, ['api', 'worker'].includes(args[0] ?? '') ? 3 : 0);
      for (const { httpGet } of probes) {
        assert.ok(opened.some(({ name }) => name === httpGet.port));
        assert.ok(served[httpGet.port as keyof typeof served].includes(`'${httpGet.path}'`));
      }
    }
    const service = resources.find(({ kind }) => kind === 'Service');
    assert.deepEqual(
      service?.spec.ports?.map(({ targetPort }) => targetPort),
      ['http'],
    );
  });

  it('is left by no command of the documentation for a pod that a restore stops', () => {
    for (const page of ['operations', 'runbook', 'self-hosting']) {
      const targets = [...read(`docs/${page}.md`).matchAll(/kubectl exec (\S+\/\S+)/g)];
      for (const [, target] of targets) assert.equal(target, 'deployment/farebox-commands', page);
    }
  });

  it('selects its own pods', () => {
    for (const { kind, metadata, spec } of resources) {
      const wanted = { 'app.kubernetes.io/name': metadata.name };
      if (spec.template) assert.deepEqual(spec.template.metadata.labels, wanted);
      if (kind === 'Service') assert.deepEqual(spec.selector, wanted);
      else if (spec.selector) assert.deepEqual(spec.selector.matchLabels, wanted);
      if (spec.scaleTargetRef) assert.equal(spec.scaleTargetRef.name, metadata.name);
    }
  });

  it('has settings that exist, with which a process starts in production mode', () => {
    const documented = read('docs/settings.md');
    for (const name of Object.keys(settings)) {
      assert.ok(documented.includes(`| \`${name.replace(/_FILE$/, '')}\``), name);
    }
    const secrets = Object.keys(settings).filter((name) => name.endsWith('_FILE'));
    const content = {
      DATABASE_URL: 'postgres://farebox@postgres/farebox',
      MASTER_SECRET: '8c5e1f0a9b7d42363c5e1f0a9b7d4236',
      STRIPE_SECRET_KEY: 'sk_live_1',
      STRIPE_WEBHOOK_SECRET: 'whsec_1',
    };
    assert.deepEqual(
      secrets,
      Object.keys(content).map((name) => `${name}_FILE`),
    );
    assert.ok(
      Object.keys(content).every((name) => SECRET_SETTINGS.some((known) => known === name)),
    );
    const config = readConfig({ ...settings, ...content });
    assert.equal(config.host, '0.0.0.0');
    // Behind an ingress, all clients have one address.
    assert.equal(config.rateLimits.failedKeysPerSecond, 0);
    assert.equal(config.connectionsPerAddress, 0);
    assert.notEqual(config.clientAddressHeader, undefined);
  });

  it('mounts the secrets where the settings look for them', () => {
    for (const { spec } of pods.values()) {
      const [{ volumeMounts }] = spec.containers;
      const mount = volumeMounts.find(({ name }) => name === 'secrets')?.mountPath;
      for (const [name, path] of Object.entries(settings)) {
        if (name.endsWith('_FILE')) assert.ok(path.startsWith(`${mount}/`), path);
        const key = path.split('/').at(-1) ?? '';
        if (name.endsWith('_FILE')) {
          assert.ok(read('deploy/kubernetes/kustomization.yaml').includes(`--from-file=${key}`));
        }
      }
    }
  });

  it('gives the API, the worker and commands the payload keys and the mail server, if the secret has them', () => {
    for (const [name, { spec }] of pods) {
      if (name === 'farebox-migrate') continue;
      assert.deepEqual(spec.containers[0].env, [
        {
          name: 'TEMPORAL_PAYLOAD_KEYS',
          valueFrom: {
            secretKeyRef: { name: 'farebox', key: 'temporal-payload-keys', optional: true },
          },
        },
        {
          name: 'SMTP_URL',
          valueFrom: { secretKeyRef: { name: 'farebox', key: 'smtp-url', optional: true } },
        },
      ]);
    }
    assert.equal(settings['WORKER_VERSIONING'], 'off');
  });

  it('gives containers no right that they do not need', () => {
    for (const { spec } of pods.values()) {
      assert.deepEqual(spec.containers[0].securityContext, {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      assert.equal((spec.securityContext as { runAsNonRoot: boolean }).runAsNonRoot, true);
    }
  });
});
