/** The frame around every page after sign-in: navigation, the account menu and the connection notice. */
import {
  ActionIcon,
  Alert,
  AppShell,
  Badge,
  Burger,
  Center,
  Group,
  Loader,
  Menu,
  NavLink,
  ScrollArea,
  Text,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import {
  IconBuildingStore,
  IconChartBar,
  IconChecklist,
  IconCircleX,
  IconCoins,
  IconFileText,
  IconHeartbeat,
  IconHierarchy,
  IconHistory,
  IconKey,
  IconLogout,
  IconMoon,
  IconReceipt,
  IconSettings,
  IconShieldLock,
  IconSun,
  IconTool,
  IconUserCircle,
  IconUsers,
  IconWallet,
  IconWebhook,
} from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, Outlet, useNavigate, useRouterState } from '@tanstack/react-router';
import {
  useEffect,
  useRef,
  useSyncExternalStore,
  type ComponentType,
  type MouseEvent,
} from 'react';
import { flushSync } from 'react-dom';
import type { Approvals } from '../answers.ts';
import { auth, hasSessionEnded, isUnreachable, read, watchConnection } from '../api.ts';
import { sessionRead } from '../page-reads.ts';
import { forgetAccount } from '../session.ts';
import { Brand } from './brand.tsx';
import { showFailure } from './show-failure.ts';
import { SignInAgain } from './sign-in-again.tsx';
import { Failed } from './states.tsx';

interface Entry {
  readonly to: string;
  readonly label: string;
  readonly icon: ComponentType<{ size: number; stroke: number }>;
  readonly badge?: ComponentType;
}

const CONSUMER: readonly Entry[] = [
  { to: '/balance', label: 'Balance', icon: IconWallet },
  { to: '/usage', label: 'Usage', icon: IconReceipt },
  { to: '/statements', label: 'Statements', icon: IconFileText },
  { to: '/budgets', label: 'Budgets', icon: IconHierarchy },
  { to: '/approvals', label: 'Approvals', icon: IconChecklist, badge: PendingApprovals },
  { to: '/keys', label: 'Consumer keys', icon: IconKey },
];
const DEVELOPER: readonly Entry[] = [
  { to: '/developer', label: 'Developer Dashboard', icon: IconChartBar },
  { to: '/developer/charges', label: 'Charges', icon: IconCoins },
  { to: '/developer/refusals', label: 'Refused calls', icon: IconCircleX },
  { to: '/developer/tools', label: 'Tools', icon: IconTool },
  { to: '/developer/top-ups', label: 'Top-ups', icon: IconBuildingStore },
  { to: '/developer/webhooks', label: 'Webhooks', icon: IconWebhook },
  { to: '/developer/settings', label: 'Developer Settings', icon: IconSettings },
];
const OPERATOR: readonly Entry[] = [
  { to: '/operator', label: 'Service', icon: IconHeartbeat },
  { to: '/operator/accounts', label: 'Accounts', icon: IconUsers },
  { to: '/operator/audit-log', label: 'Audit log', icon: IconHistory },
];

const RETRY_MS = 2_000;

export function useSession() {
  return useQuery(sessionRead);
}

export function Shell() {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  const content = useRef<HTMLElement>(null);
  // Without an entry in the history, whose order the router would not know.
  const skip = (event: MouseEvent) => {
    event.preventDefault();
    // In a narrow window, an open navigation hides the content.
    flushSync(close);
    content.current?.focus();
  };
  const session = useSession();
  const path = useRouterState({ select: (state) => state.location.pathname });
  useEffect(close, [path, close]);
  // Nobody is signed in: the code of the sign-in page is on its way.
  const isLeaving = hasSessionEnded(session.error);
  if (session.data === undefined && (!session.error || isLeaving)) {
    return (
      <Center mih="100vh">
        <Loader size="sm" aria-label="Loading" />
      </Center>
    );
  }
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 240, breakpoint: 'md', collapsed: { mobile: !isOpen } }}
      padding={{ base: 'md', sm: 'xl' }}
    >
      <a href="#content" className="skip" onClick={skip}>
        Skip to content
      </a>
      <AppShell.Header px="md">
        <Group h="100%" justify="space-between" wrap="nowrap">
          <Group gap="xs" wrap="nowrap">
            <Burger
              opened={isOpen}
              onClick={toggle}
              hiddenFrom="md"
              size="sm"
              aria-label={isOpen ? 'Close navigation' : 'Open navigation'}
            />
            <Brand />
            {session.data?.simulated === true && (
              <Text size="xs" c="dimmed" visibleFrom="xs">
                Simulated payments
              </Text>
            )}
          </Group>
          <Group gap={4} wrap="nowrap">
            <SchemeSwitch />
            <AccountMenu email={session.data?.email ?? ''} />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar
        p="sm"
        component="nav"
        aria-label="Main"
        {...(isOpen ? {} : { className: 'narrow-hidden' })}
      >
        <AppShell.Section grow component={ScrollArea}>
          <Entries entries={CONSUMER} path={path} onChoose={close} />
          <NavHead text="For developers" />
          <Entries entries={DEVELOPER} path={path} onChoose={close} />
          {session.data?.operator === true && (
            <>
              <NavHead text="For operators" />
              <Entries entries={OPERATOR} path={path} onChoose={close} />
            </>
          )}
        </AppShell.Section>
      </AppShell.Navbar>
      <AppShell.Main
        id="content"
        ref={content}
        tabIndex={-1}
        style={{ outline: 'none' }}
        {...(isOpen ? { className: 'narrow-hidden' } : {})}
      >
        <div style={{ maxWidth: 1120, margin: '0 auto' }}>
          <ConnectionNote />
          {session.data === undefined && session.error ? (
            <Failed error={session.error} onRetry={() => void session.refetch()} />
          ) : (
            <Outlet />
          )}
        </div>
      </AppShell.Main>
      <SignInAgain />
    </AppShell>
  );
}

function NavHead({ text }: { readonly text: string }) {
  return (
    <Text size="xs" fw={600} c="dimmed" px="sm" mt="lg" mb={4} className="nav-head">
      {text}
    </Text>
  );
}

/**
 * Whether the page, such as that of one tool, is among those of the entry. The first page of a role has none
 * below it.
 */
function isBelow(path: string, to: string): boolean {
  return to.lastIndexOf('/') > 0 && path.startsWith(`${to}/`);
}

interface EntriesProps {
  readonly entries: readonly Entry[];
  readonly path: string;
  /** Called even if the page is already shown. */
  readonly onChoose: () => void;
}

function Entries({ entries, path, onChoose }: EntriesProps) {
  return entries.map(({ to, label, icon: Icon, badge: Count }) => (
    <NavLink
      key={to}
      component={Link}
      to={to}
      onClick={onChoose}
      activeOptions={{ exact: true, includeSearch: false }}
      label={label}
      active={path === to || isBelow(path, to)}
      aria-current={path === to ? 'page' : undefined}
      leftSection={<Icon size={18} stroke={1.6} />}
      rightSection={Count && <Count />}
      style={{ borderRadius: 8 }}
    />
  ));
}

/** How many questions wait for an answer; nothing when there are none. */
function PendingApprovals() {
  const { data } = useQuery({
    queryKey: ['approvals', 'pending'],
    queryFn: () => read<Approvals>('/v1/approvals?status=pending&limit=100'),
    refetchInterval: 15_000,
  });
  const count = data?.approvals.length ?? 0;
  if (count === 0) return null;
  return (
    <Badge size="sm" circle={count < 10} aria-label={`${count} waiting`}>
      {data?.hasMore === true ? '99+' : count}
    </Badge>
  );
}

/** Says that Farebox cannot be reached, retries until it can, then reloads the data on the page. */
function ConnectionNote() {
  const isAway = useSyncExternalStore(watchConnection, isUnreachable);
  const queries = useQueryClient();
  useEffect(() => {
    if (!isAway) return undefined;
    let isAsking = false;
    const ask = async () => {
      // A server that does not answer would be asked ever more, and a browser sends six requests at a time.
      if (isAsking) return;
      isAsking = true;
      await read('/v1/session').catch(() => undefined);
      isAsking = false;
    };
    const timer = setInterval(() => void ask(), RETRY_MS);
    return () => {
      clearInterval(timer);
      // Whichever request was the first to succeed.
      void queries.invalidateQueries();
    };
  }, [isAway, queries]);
  if (!isAway) return null;
  return (
    <Alert color="orange" mb="lg" role="status" title="Farebox cannot be reached">
      Your input is kept. We keep trying, and this page continues once the connection is back.
    </Alert>
  );
}

function SchemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const isDark =
    colorScheme === 'dark' ||
    (colorScheme === 'auto' && window.matchMedia('(prefers-color-scheme: dark)').matches);
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      size="lg"
      aria-label={isDark ? 'Use light colors' : 'Use dark colors'}
      onClick={() => setColorScheme(isDark ? 'light' : 'dark')}
    >
      {isDark ? <IconSun size={18} /> : <IconMoon size={18} />}
    </ActionIcon>
  );
}

function AccountMenu({ email }: { readonly email: string }) {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const signOut = async () => {
    forgetAccount();
    try {
      await auth('/sign-out', {});
    } catch (error) {
      const message = `${(error as Error).message} You may still be signed in.`;
      showFailure(message);
      return queries.invalidateQueries(sessionRead);
    }
    queries.clear();
    await navigate({ to: '/sign-in' });
  };
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Account">
          <IconUserCircle size={20} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label className="breaks">{email}</Menu.Label>
        <Menu.Item component={Link} to="/security" leftSection={<IconShieldLock size={16} />}>
          Security
        </Menu.Item>
        <Menu.Item component={Link} to="/audit-log" leftSection={<IconHistory size={16} />}>
          Audit log
        </Menu.Item>
        <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => void signOut()}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
