/** The answer to a change is what the page shows next. */
import type { QueryClient } from '@tanstack/react-query';

/** Shows it in place of what was read. A read that is still on its way may not know of the change: it is dropped. */
export async function showAnswer(
  queries: QueryClient,
  queryKey: readonly string[],
  answer: object,
): Promise<void> {
  await queries.cancelQueries({ queryKey });
  queries.setQueryData(queryKey, answer);
}
