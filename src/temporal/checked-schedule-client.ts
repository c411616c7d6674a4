/**
 * Updates of schedules that do not undo what somebody else changed. The SDK describes a schedule and then replaces
 * all of it, its pause too; Temporal refuses that for a schedule that was changed in between only if it is told which
 * state was described.
 */
import { ScheduleClient, type Client } from '@temporalio/client';

type Service = ScheduleClient['workflowService'];

/** Temporal may drop such an update without an error, so describe the schedule again afterwards. */
export class CheckedScheduleClient extends ScheduleClient {
  #described: Uint8Array | undefined;

  constructor({ connection, options: { namespace, loadedDataConverter } }: Client) {
    super({ connection, namespace, dataConverter: loadedDataConverter });
  }

  override get workflowService(): Service {
    const service = super.workflowService;
    return Object.assign(Object.create(service) as Service, {
      describeSchedule: async (request: Parameters<Service['describeSchedule']>[0]) => {
        const description = await service.describeSchedule(request);
        this.#described = description.conflictToken;
        return description;
      },
      updateSchedule: (request: Parameters<Service['updateSchedule']>[0]) =>
        service.updateSchedule({
          ...request,
          ...(this.#described && { conflictToken: this.#described }),
        }),
    });
  }
}
