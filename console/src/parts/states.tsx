/** What is shown in place of data or of a page: loading, failed, empty, not found. */
import {
  Alert,
  Button,
  Center,
  Code,
  Loader,
  Paper,
  Stack,
  Text,
  ThemeIcon,
  Title,
} from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { useQueryClient, type UseQueryResult } from '@tanstack/react-query';
import { Link, useRouter } from '@tanstack/react-router';
import { useEffect, type ReactNode } from 'react';
import { ApiFailure, isSilence } from '../api.ts';

interface EmptyProps {
  readonly icon: ReactNode;
  readonly title: string;
  readonly children: ReactNode;
  readonly action?: ReactNode;
}

export function Empty({ icon, title, children, action }: EmptyProps) {
  return (
    <Center py="xl" px="md">
      <Stack align="center" gap="xs" maw={420}>
        <ThemeIcon variant="default" size={44} radius="xl" aria-hidden>
          {icon}
        </ThemeIcon>
        <Text fw={600}>{title}</Text>
        <Text c="dimmed" size="sm" ta="center">
          {children}
        </Text>
        {action}
      </Stack>
    </Center>
  );
}

export function Failed({
  error,
  message = error.message,
  onRetry,
}: {
  readonly error: Error;
  readonly message?: string;
  readonly onRetry?: () => void;
}) {
  const requestId = error instanceof ApiFailure ? error.requestId : undefined;
  return (
    <Alert
      color="red"
      icon={<IconAlertTriangle />}
      title={onRetry && 'This could not be loaded'}
      role="alert"
    >
      <Text size="sm">{message}</Text>
      {requestId !== undefined && (
        <Text size="sm" mt={4}>
          Request ID: <Code className="breaks">{requestId}</Code>
        </Text>
      )}
      {onRetry && (
        <Button size="xs" mt="sm" variant="default" onClick={onRetry}>
          Try again
        </Button>
      )}
    </Alert>
  );
}

/**
 * Renders the data of a query once it has loaded; until then a loader, or the error. Below data that could not be read
 * again, it says how old they are.
 */
export function Loaded<T>({
  query,
  children,
}: {
  readonly query: UseQueryResult<T>;
  readonly children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) {
    return (
      <>
        {children(query.data)}
        {query.error && !isSilence(query.error) && <Stale at={query.dataUpdatedAt} />}
      </>
    );
  }
  if (query.error) return <Failed error={query.error} onRetry={() => void query.refetch()} />;
  return <Loading />;
}

const MINUTE = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;

/** Without the API, the note at the top of the page says so. */
function Stale({ at }: { readonly at: number }) {
  // Not by `localTime`: the first page, sign-in, loads without the file of that.
  const minute = new Date(at).toLocaleTimeString('en-US', MINUTE);
  return (
    <Text component="span" display="block" size="xs" c="dimmed" p="xs" role="status">
      This is from {minute} and could not be refreshed.
    </Text>
  );
}

/** What follows it on the page is not shown yet (styles.css), because it would move. */
export function Loading() {
  return (
    <Center py="xl" className="loading">
      <Loader size="sm" aria-label="Loading" />
    </Center>
  );
}

/** Answers of an older API, which lack members that the page needs, end with the upgrade. */
const AGAIN_MS = 5_000;

/**
 * In place of a page whose code fails, or cannot be loaded, for example during an upgrade or in an outage.
 * The navigation stays, and the page is tried again, with new answers, until it works.
 */
export function PageFailed() {
  const queries = useQueryClient();
  const router = useRouter();
  useEffect(() => {
    // If the page fails again, this alert is drawn anew, and with it the timer.
    const timer = setTimeout(() => {
      // What the page read is read again when it is drawn, and what other pages read, when they are opened.
      queries.removeQueries({ type: 'inactive' });
      void queries.refetchQueries({ type: 'active' }).then(() => router.invalidate());
    }, AGAIN_MS);
    return () => clearTimeout(timer);
  }, [queries, router]);
  return (
    <Alert
      color="red"
      icon={<IconAlertTriangle />}
      title="This page could not be loaded"
      role="alert"
    >
      <Text size="sm">
        Farebox may be in the middle of an upgrade. We keep trying, and the page appears when it can
        be loaded. If it does not appear in a few minutes, reload it.
      </Text>
      <Button size="xs" mt="sm" variant="default" onClick={() => window.location.reload()}>
        Reload
      </Button>
    </Alert>
  );
}

export function NotFound() {
  return (
    <Center mih="60vh" p="md" component="main">
      <Paper maw={420}>
        <Title order={1}>Page not found</Title>
        <Text c="dimmed" mt="xs" mb="md">
          This page does not exist. Check the address.
        </Text>
        <Button component={Link} to="/balance">
          Go to your balance
        </Button>
      </Paper>
    </Center>
  );
}
