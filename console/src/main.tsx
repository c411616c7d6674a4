/** The console: providers around the router. */
import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import './styles.css';
import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { ApiFailure, hasSessionEnded } from './api.ts';
import { keepFocus } from './keep-focus.ts';
import { router } from './router.tsx';
import { cssVariables, theme } from './theme.ts';

/** A page that is opened without a session leads to the sign-in page, and from there back. */
function leaveWhenEnded(error: Error): void {
  if (!hasSessionEnded(error)) return;
  const { pathname, searchStr } = router.state.location;
  if (pathname.startsWith('/sign-in')) return;
  void router.navigate({ to: '/sign-in', search: { next: pathname + searchStr, reason: 'ended' } });
}

/** An account that reads too much at a time is asked to wait for one second. Three retries cover two as well. */
const SOON_SECONDS = 2;

/** The API could not be reached, or can be asked again in a moment. Any other refusal would be the same again. */
function mayWorkSoon(error: Error): boolean {
  if (!(error instanceof ApiFailure)) return false;
  return error.status === 0 || (error.retryAfterSeconds ?? Infinity) <= SOON_SECONDS;
}

const queries = new QueryClient({
  queryCache: new QueryCache({ onError: leaveWhenEnded }),
  mutationCache: new MutationCache({ onError: leaveWhenEnded }),
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      retry: (count, error) => count < 3 && mayWorkSoon(error),
      retryDelay: 1_000,
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
});

keepFocus();

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" cssVariablesResolver={cssVariables}>
      <QueryClientProvider client={queries}>
        <Notifications position="bottom-right" />
        <RouterProvider router={router} context={{ queries }} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
