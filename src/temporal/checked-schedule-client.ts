/**
 * Updates of schedules that do not undo what somebody else changed. The SDK describes a schedule and then replaces
 * all of it, its pause too; Temporal refuses that for a schedule that was changed in between only if it is told which
 * state was described.
 */
import { ScheduleClient, type Client } from '@temporalio/client';

/** Temporal may drop such an update without an error, so describe the schedule again afterwards. */
export class CheckedScheduleClient extends ScheduleClient {
  #described: Uint8Array | undefined;

  constructor({ connection, options: { namespace, loadedDataConverter } }: Client) {
    super({ connection, namespace, dataConverter: loadedDataConverter });
  }

  protected override async _describeSchedule(scheduleId: string) {
    const description = await super._describeSchedule(scheduleId);
    this.#described = description.conflictToken ?? undefined;
    return description;
  }

  override get workflowService(): ScheduleClient['workflowService'] {
    const service = super.workflowService;
    const conflictToken = this.#described;
    return Object.create(service, {
      updateSchedule: {
        value: (request: Parameters<typeof service.updateSchedule>[0]) =>
          service.updateSchedule({ ...request, ...(conflictToken && { conflictToken }) }),
      },
    }) as typeof service;
  }
}
