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
import { hasSessionEnded, isSilence, mayWorkSoon, PAUSE_MS, SENT_AGAIN_MAX } from './api.ts';
import { keepFocus } from './keep-focus.ts';
import { router } from './router.tsx';
import { cssVariables, theme } from './theme.ts';

/**
 * A page that is opened without a session leads to the sign-in page, and from there back. It does not say that a
 * session has ended: somebody who comes for the first time had none.
 */
function leaveWhenEnded(error: Error): void {
  if (!hasSessionEnded(error)) return;
  const { pathname, searchStr } = router.state.location;
  if (pathname.startsWith('/sign-in')) return;
  void router.navigate({ to: '/sign-in', search: { next: pathname + searchStr } });
}

const queries = new QueryClient({
  queryCache: new QueryCache({ onError: leaveWhenEnded }),
  mutationCache: new MutationCache({ onError: leaveWhenEnded }),
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      // Any other refusal would be the same again.
      retry: (count, error) => count < SENT_AGAIN_MAX && (isSilence(error) || mayWorkSoon(error)),
      retryDelay: PAUSE_MS,
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
