import type { z } from 'zod'
import { readPage } from './list'
import { HttpProblem } from './problem'
import type { Call } from './route'
import { commandScope, isForeign, placeIn, placeOf, scopeOf, type ServedCommandScope, type ServedScope } from './scope'
import type { Server } from './server'
import type {
  scheduleBodySchema,
  scheduleListQuerySchema,
  schedulePauseBodySchema,
  ServedSchedule,
} from './wire-cluster'

/** What the server needs of `createScheduler()`. */
export interface ServedSchedules {
  list(
    filter: ServedScope & {
      readonly jobName?: string | undefined
      readonly labels?: Readonly<Record<string, string>> | undefined
      readonly paused?: boolean | undefined
      readonly ended?: boolean | undefined
      readonly limit?: number | undefined
      readonly after?: { readonly tenant: string; readonly name: string } | undefined
    },
  ): Promise<readonly ServedSchedule[]>
  pause(name: string, options: ServedCommandScope & { readonly because?: string | undefined }): Promise<ServedSchedule>
  resume(name: string, scope: ServedCommandScope): Promise<ServedSchedule>
  runNow(name: string, scope: ServedCommandScope): Promise<{ readonly id: string }>
}

/** `GET /schedules` */
export async function listSchedules({ access, server, query }: Call<z.output<typeof scheduleListQuerySchema>>) {
  const schedules = schedulesOf(server)
  const { tenant, limit, cursor, ...filter } = query
  const place = cursor === undefined ? undefined : placeIn(cursor)
  const after = place === undefined ? undefined : { tenant: place[0], name: place[1] }
  const { items, next } = await readPage(server, limit, {
    read: async (size) =>
      isForeign(access, tenant) ? [] : schedules.list({ ...filter, ...scopeOf(access, tenant), limit: size, after }),
    placeOf: (schedule) => placeOf(schedule.tenant, schedule.name),
  })
  return { schedules: items.map((each) => server.present.schedule(each)), next }
}

/** `POST /schedules/pause` */
export async function pauseSchedule({ access, server, body }: Call<unknown, z.output<typeof schedulePauseBodySchema>>) {
  const { name, tenant, because } = body
  const scope = commandScope({ access, server }, tenant)
  return server.present.schedule(await schedulesOf(server).pause(name, { ...scope, because }))
}

/** `POST /schedules/resume` */
export async function resumeSchedule({ access, server, body }: Call<unknown, z.output<typeof scheduleBodySchema>>) {
  const scope = commandScope({ access, server }, body.tenant)
  return server.present.schedule(await schedulesOf(server).resume(body.name, scope))
}

/** `POST /schedules/run` */
export async function runSchedule({ access, server, body }: Call<unknown, z.output<typeof scheduleBodySchema>>) {
  const { id } = await schedulesOf(server).runNow(body.name, commandScope({ access, server }, body.tenant))
  return { id }
}

function schedulesOf({ settings: { schedules } }: Server): ServedSchedules {
  if (schedules !== null) return schedules
  throw new HttpProblem('NOT_SERVED', 'Schedules are not served here: createDurablyHandler() was given none.')
}
