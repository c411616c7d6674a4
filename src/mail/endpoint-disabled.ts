/** Tells owners of webhook endpoints that one was disabled because of its responses. */
import { wireId } from '../domain/ids.ts';
import {
  dropDisabled,
  recordDisabledMailed,
  takeDisabled,
  type DisabledEndpoint,
} from '../store/events/disabled-mails.ts';
import { owedMails, type OwedMailDeps, type OwedMails } from './owed-mails.ts';
import type { Mail } from './send.ts';

export function endpointMails(deps: OwedMailDeps): OwedMails<DisabledEndpoint> {
  const { database } = deps;
  return owedMails(deps, {
    take: (untriedForMs) => takeDisabled(database, untriedForMs),
    mailOf: async (owed) => endpointDisabledMail(owed),
    recordMailed: (owed) => recordDisabledMailed(database, owed),
    drop: (owedForMs) => dropDisabled(database, owedForMs),
    kindOf: () => 'endpoint_disabled',
  });
}

const REASONS = {
  failing: 'has not accepted an event for five days',
  gone: 'responded with 410 Gone, which means that it wants no more events',
} as const;

const BY_API = 'with PATCH /v1/webhook-endpoints/:id';
const IN_CONSOLE = `in the console, under Webhooks, or ${BY_API}`;
/** The console shows live endpoints only. */
const WITH_TEST_KEY = `${BY_API} and a test key`;

function endpointDisabledMail({ id, reason, email, isTest }: DisabledEndpoint): Mail {
  const ofTest = isTest ? ' for test mode' : '';
  return {
    recipient: email,
    // No part of its address, which the holder of a key chose: mail programs turn it into a link.
    subject: `A webhook endpoint${ofTest} was disabled`,
    body:
      `Your webhook endpoint${ofTest} (${wireId('webhookEndpoint', id)}) ${REASONS[reason]}. Farebox no longer sends events to it.\n\n` +
      `You can enable it again ${isTest ? WITH_TEST_KEY : IN_CONSOLE}. ` +
      'Its delivery log lists the events that were not delivered, and lets you send them again.\n',
  };
}
