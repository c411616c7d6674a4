/** Repeats failed calls to Temporal until its connection closes. */
import { Metadata, status, type Interceptor } from '@grpc/grpc-js';
import {
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
  type GrpcRetryOptions,
} from '@temporalio/client';

export interface GrpcRetries {
  readonly interceptor: Interceptor;
  /** Attempts that would start from now on fail as if Temporal were down, and nothing is repeated. */
  end(): void;
}

type Attempt = ReturnType<Parameters<Interceptor>[1]>;

/**
 * The retries of `@temporalio/client` start from timers, which nothing cancels: on a closed connection one would throw
 * where nobody can catch it, and end the process with an error. So end them before you close it.
 */
export function createGrpcRetries(attemptsMax: number): GrpcRetries {
  const usual = defaultGrpcRetryOptions({ maxAttempts: attemptsMax });
  let isEnded = false;
  const untilEnded: GrpcRetryOptions = {
    ...usual,
    retryableDecider: (attempt, failure) => !isEnded && usual.retryableDecider(attempt, failure),
  };
  const retry = makeGrpcRetryInterceptor(untilEnded);
  return {
    interceptor: (options, startAttempt) =>
      retry(options, (current) => (isEnded ? refusedAttempt() : startAttempt(current))),
    end: () => {
      isEnded = true;
    },
  };
}

const nothing = () => {};

function refusedAttempt(): Attempt {
  return {
    start: (_, listener) => {
      queueMicrotask(() => {
        listener?.onReceiveMessage?.(null);
        listener?.onReceiveStatus?.({
          code: status.UNAVAILABLE,
          details: 'the connection is closed',
          metadata: new Metadata(),
        });
      });
    },
    sendMessage: nothing,
    sendMessageWithContext: nothing,
    startRead: nothing,
    halfClose: nothing,
    cancelWithStatus: nothing,
    getPeer: () => '',
    getAuthContext: () => null,
  };
}
