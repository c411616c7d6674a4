/** Paid tools and MCP tasks: a call that only starts a task, or that is requested as one, is not paid for. */
import assert from 'node:assert/strict';
import { paidTool } from '@farebox/client/mcp';
import { FakeFarebox } from '@farebox/client/testing';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import {
  InMemoryTaskStore,
  type CreateTaskRequestHandlerExtra,
} from '@modelcontextprotocol/sdk/experimental/tasks';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer as McpServerV1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';

/** Calls the only tool of a server of version 1 of the SDK that supports tasks. */
async function call(register: (server: McpServerV1) => void, task?: { ttl: number }) {
  const capabilities = { tasks: { requests: { tools: { call: {} } } } };
  const taskStore = new InMemoryTaskStore();
  const server = new McpServerV1({ name: 'test', version: '1.0.0' }, { capabilities, taskStore });
  register(server);
  const [near, far] = InMemoryTransport.createLinkedPair();
  await server.connect(far);
  const client = new ClientV1({ name: 'test', version: '1.0.0' });
  await client.connect(near);
  const params = { name: 'report', ...(task && { task }) };
  try {
    return await client.request({ method: 'tools/call', params }, CallToolResultSchema);
  } finally {
    taskStore.cleanup();
    await client.close();
  }
}

/** Makes a task that fails at once. */
const createTask = async ({ taskStore }: CreateTaskRequestHandlerExtra) => {
  const task = await taskStore.createTask({ ttl: 60_000, pollInterval: 1 });
  const result = { content: [], isError: true };
  await taskStore.storeTaskResult(task.taskId, 'failed', result);
  return { task };
};

describe('client: paid tools and MCP tasks', () => {
  let fake: FakeFarebox;
  let apiKey: string;
  let before: string | undefined;

  beforeEach(() => {
    fake = new FakeFarebox();
    ({ apiKey } = fake.addConsumer({ balance: 10 }));
    before = process.env['SERVICE_KEY'];
    process.env['SERVICE_KEY'] = apiKey;
  });
  afterEach(() => {
    if (before === undefined) delete process.env['SERVICE_KEY'];
    else process.env['SERVICE_KEY'] = before;
  });

  const options = { tool: 'report', price: 1 };

  /** The balance, and the states of all holds. */
  async function books() {
    const { balance } = await fake.consumer(apiKey).balance();
    const { holds } = await fake.farebox().holds.list().page();
    return [balance, ...holds.map(({ status }) => status)];
  }

  /** Registers a tool whose task fails. */
  const asTask = (taskSupport: 'optional' | 'required') => (server: McpServerV1) => {
    const execution = { taskSupport };
    server.experimental.tasks.registerToolTask(
      'report',
      { execution },
      {
        createTask: paidTool(fake.farebox(), options, createTask),
        getTask: ({ taskId, taskStore }) => taskStore.getTask(taskId),
        getTaskResult: async ({ taskId, taskStore }) =>
          CallToolResultSchema.parse(await taskStore.getTaskResult(taskId)),
      },
    );
  };

  it('do not bill a task that has no result yet, and say so', async () => {
    const { isError, content } = await call(asTask('optional'));
    assert.equal(isError, true);
    assert.match(JSON.stringify(content), /paidTool cannot bill .*report.* as a task; nothing/);
    assert.deepEqual(await books(), [10, 'released']);
  });

  it('do not begin a task when they are called as one', async () => {
    await assert.rejects(call(asTask('required'), { ttl: 60_000 }));
    assert.deepEqual(await books(), [10]);
  });

  it('are not paid for when they are called as a task that they do not make', async () => {
    const answer = paidTool(fake.farebox(), options, async () => ({ content: [] }));
    const register = (server: McpServerV1) => void server.registerTool('report', {}, answer);
    await assert.rejects(call(register, { ttl: 60_000 }), /Invalid task creation result/);
    assert.deepEqual(await books(), [10]);
  });

  it('are not paid for when the type of the result is not complete', async () => {
    const begun = { resultType: 'task', taskId: '1', status: 'working' };
    const answer = paidTool(fake.farebox(), options, async () => begun);
    await assert.rejects(answer(), /cannot bill "report" as a task/);
    const complete = { resultType: 'complete', content: [], task: 'a member of its own' };
    await paidTool(fake.farebox(), options, async () => complete)();
    assert.deepEqual(await books(), [9, 'captured', 'released']);
  });
});
