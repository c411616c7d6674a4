/** Maps paths to pages. List filters are in the URL, so that a view can be shared. */
import type { QueryClient } from '@tanstack/react-query';
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from '@tanstack/react-router';
import { uuidOf, type IdKind } from '../../src/domain/ids.ts';
import { readBalancePage, readDashboard } from './page-reads.ts';
import { Shell } from './parts/shell.tsx';
import { NotFound, PageFailed } from './parts/states.tsx';

type Words = Readonly<Record<string, unknown>>;

/** Search parameters that are ids: any other text could lead to another route of the API. */
const IDS: Readonly<Record<string, IdKind>> = {
  approval: 'approval',
  budget: 'budget',
  charge: 'charge',
  developer: 'developer',
  topUp: 'topUp',
};

function wordOf(name: string, value: unknown): string | undefined {
  const text = typeof value === 'string' ? value : '';
  const kind = IDS[name];
  const isId = kind === undefined || uuidOf(kind, text) !== undefined;
  return text !== '' && isId ? text : undefined;
}

/**
 * These search parameters as text; a missing or empty one, or one that is no id though it should be, is undefined. It
 * is a member all the same: otherwise the router would keep it as it came.
 */
const words =
  <Name extends string>(...names: readonly Name[]) =>
  (search: Words): { [Key in Name]?: string } =>
    Object.fromEntries(names.map((name) => [name, wordOf(name, search[name])])) as {
      [Key in Name]?: string;
    };

/** Ahead of the data that it shows. */
const loadChart = (): void => void import('./parts/chart.tsx').catch(() => undefined);

const root = createRootRouteWithContext<{ readonly queries: QueryClient }>()({
  notFoundComponent: NotFound,
});
const shell = createRoute({ getParentRoute: () => root, id: 'shell', component: Shell });
const charges = words('tool', 'from', 'to', 'consumerId', 'charge');

const routes = root.addChildren([
  createRoute({
    getParentRoute: () => root,
    path: '/sign-in',
    component: lazyRouteComponent(() => import('./pages/sign-in.tsx'), 'SignInPage'),
    validateSearch: words('next', 'reason'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/sign-up',
    component: lazyRouteComponent(() => import('./pages/sign-in.tsx'), 'SignUpPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/set-password',
    component: lazyRouteComponent(() => import('./pages/sign-in.tsx'), 'SetPasswordPage'),
    validateSearch: words('token'),
  }),
  shell.addChildren([
    createRoute({
      getParentRoute: () => shell,
      path: '/',
      beforeLoad: () => {
        throw redirect({ to: '/balance' });
      },
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/balance',
      component: lazyRouteComponent(() => import('./pages/balance.tsx'), 'BalancePage'),
      loader: ({ context }) => {
        readBalancePage(context.queries);
        loadChart();
      },
      validateSearch: words('topUp', 'result', 'amount'),
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/usage',
      component: lazyRouteComponent(() => import('./pages/usage.tsx'), 'UsagePage'),
      validateSearch: charges,
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/statements',
      component: lazyRouteComponent(() => import('./pages/statements.tsx'), 'StatementsPage'),
      validateSearch: words('month', 'as'),
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/budgets',
      component: lazyRouteComponent(() => import('./pages/budgets.tsx'), 'BudgetsPage'),
      validateSearch: words('budget'),
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/approvals',
      component: lazyRouteComponent(() => import('./pages/approvals.tsx'), 'ApprovalsPage'),
      validateSearch: words('approval', 'budget', 'scope', 'developer'),
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/keys',
      component: lazyRouteComponent(() => import('./pages/keys.tsx'), 'KeysPage'),
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/security',
      component: lazyRouteComponent(() => import('./pages/security.tsx'), 'SecurityPage'),
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/audit-log',
      component: lazyRouteComponent(() => import('./pages/audit-log.tsx'), 'AuditLogPage'),
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/developer',
      component: lazyRouteComponent(() => import('./pages/dashboard.tsx'), 'DashboardPage'),
      loader: ({ context }) => {
        readDashboard(context.queries);
        loadChart();
      },
      validateSearch: words('tool', 'days'),
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/developer/charges',
      component: lazyRouteComponent(
        () => import('./pages/developer-charges.tsx'),
        'DeveloperChargesPage',
      ),
      validateSearch: charges,
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/developer/tools',
      component: lazyRouteComponent(() => import('./pages/tools.tsx'), 'ToolsPage'),
      validateSearch: words('archived'),
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/developer/tools/$toolId',
      component: lazyRouteComponent(() => import('./pages/tool.tsx'), 'ToolPage'),
      loader: loadChart,
      validateSearch: words('days'),
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/developer/top-ups',
      component: lazyRouteComponent(
        () => import('./pages/developer-top-ups.tsx'),
        'DeveloperTopUpsPage',
      ),
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/developer/refusals',
      component: lazyRouteComponent(() => import('./pages/refusals.tsx'), 'RefusalsPage'),
      validateSearch: words('hours', 'code', 'tool'),
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/developer/settings',
      component: lazyRouteComponent(() => import('./pages/settings.tsx'), 'SettingsPage'),
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/developer/webhooks',
      component: lazyRouteComponent(() => import('./pages/webhooks.tsx'), 'WebhooksPage'),
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/operator',
      component: lazyRouteComponent(() => import('./pages/operator.tsx'), 'OperatorPage'),
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/operator/audit-log',
      component: lazyRouteComponent(() => import('./pages/audit-log.tsx'), 'OperatorAuditLogPage'),
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/operator/accounts',
      component: lazyRouteComponent(
        () => import('./pages/operator-accounts.tsx'),
        'OperatorAccountsPage',
      ),
      validateSearch: words('query'),
    }),
    createRoute({
      getParentRoute: () => shell,
      path: '/operator/accounts/$accountId',
      component: lazyRouteComponent(
        () => import('./pages/operator-account.tsx'),
        'OperatorAccountPage',
      ),
    }),
  ]),
]);

export const router = createRouter({
  routeTree: routes,
  // RouterProvider has it.
  context: { queries: undefined as unknown as QueryClient },
  basepath: '/console',
  defaultErrorComponent: PageFailed,
  // The default parser turns ids that look like numbers into numbers; ours are all text.
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const entries = Object.entries(search).filter(([, value]) => value !== undefined);
    const text = new URLSearchParams(entries.map(([name, value]) => [name, String(value)]));
    return text.size === 0 ? '' : `?${text}`;
  },
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
