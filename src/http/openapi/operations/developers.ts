/** The prose of the API reference for developers. */
import type { Operation } from '../operation.ts';

export const DEVELOPER_OPERATIONS = {
  listDeveloperTopUps: {
    tag: 'Earnings',
    summary: 'List the top-ups that paid for your charges',
    description:
      'Returns the top-ups that were at least partly spent on your tools, newest first. A balance spends its ' +
      'oldest top-up first.',
  },
  listRefusals: {
    tag: 'Charges',
    summary: 'List refused requests',
    description:
      'Returns how often your requests were refused, by error code and tool, with the ids of the last requests. ' +
      'Each refused entry of a settlement counts too. ' +
      'Farebox keeps these figures for 30 days, by the hour. They may be a few seconds old.',
  },
  getDeveloper: {
    tag: 'Earnings',
    summary: 'Get your developer settings',
    description: 'Returns your settings.',
  },
  updateDeveloper: {
    tag: 'Earnings',
    summary: 'Change your developer settings',
    description:
      'Changes the fields that you send. `returnUrl` is an https page of yours: people who top up through ' +
      'the `topUpUrl` of one of your refusals can return to it. Add `&returnUrl=` to a link to name another ' +
      'page of the same origin.',
  },
} as const satisfies Record<string, Operation>;
