import { z } from 'zod'

/**
 * Everything that goes between the page and the api: the schemas of each route and of what a stream tells. The page takes
 * the types, the api checks by the schemas. What goes wrong is `problemSchema`; what is somebody else's is 404.
 */

const id = z.string().min(1).max(100)
const instant = z.string()
const json: z.ZodType<unknown> = z.unknown()

export const problemSchema = z.object({
  code: z.string(),
  status: z.number(),
  detail: z.string(),
  issues: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
})

// Who asks -----------------------------------------------------------------------------------------------------------

export const userSchema = z.object({ id, name: z.string() })

/** `GET /api/me`: 401 for nobody; what a page of nobody has to know is `GET /api/entrance`. */
export const meSchema = z.object({ user: userSchema })

/** `GET /api/entrance`: how one gets in here. */
export const entranceSchema = z.object({
  profile: z.enum(['dev-local', 'prod']),
  /** Who can be without a password: only where the demo identity is on. */
  demoUsers: z.array(userSchema),
  /** Where to go to sign in with the identity provider; `null` where there is none. Takes `?return_to=/path`. */
  signInPath: z.string().nullable(),
})

/** `POST /api/auth/demo` → meSchema; `POST /api/auth/sign-out` → 204. */
export const demoSignInBodySchema = z.strictObject({ user_id: id })

// The model and its key ----------------------------------------------------------------------------------------------

export const PROVIDERS = ['demo', 'openai-compatible'] as const
export const REASONING = ['none', 'low', 'medium', 'high'] as const

/** `GET /api/settings` */
export const settingsSchema = z.object({
  provider: z.enum(PROVIDERS),
  /** `https://api.openai.com/v1`, `http://localhost:11434/v1`; `null` for the demo model. */
  base_url: z.string().nullable(),
  model: z.string(),
  reasoning: z.enum(REASONING),
  /** A key is never told again. */
  has_api_key: z.boolean(),
})

/** `PUT /api/settings` → settingsSchema. `api_key: null` removes it, left out it stays. */
export const settingsBodySchema = z.strictObject({
  provider: z.enum(PROVIDERS),
  base_url: z
    .url({ protocol: /^https?$/ })
    .max(500)
    .nullable(),
  model: z.string().min(1).max(200),
  reasoning: z.enum(REASONING),
  api_key: z.string().min(1).max(4000).nullable().optional(),
})

/** `GET /api/connection`: the account at the model provider (OAuth) whose token the workers use. */
export const connectionSchema = z.object({
  isAvailable: z.boolean(),
  isConnected: z.boolean(),
  connected_at: instant.nullable(),
  expires_at: instant.nullable(),
  /** Why it has to be connected anew. */
  trouble: z.string().nullable(),
})

/** `POST /api/oauth/openai/start`: go there; comes back to `return_to` with `?connected=1` or `?oauth_error=code`. */
export const oauthStartBodySchema = z.strictObject({ return_to: z.string().max(500).optional() })
export const oauthStartSchema = z.object({ url: z.url() })
// `DELETE /api/connection` → 204

/** `GET /api/tools` */
export const toolListSchema = z.object({
  tools: z.array(
    z.object({
      name: z.string(),
      description: z.string(),
      needsApproval: z.boolean(),
      sideEffects: z.boolean(),
      input: z.record(z.string(), json),
    }),
  ),
})

// Sessions -----------------------------------------------------------------------------------------------------------

export const sessionSchema = z.object({
  session_id: id,
  title: z.string(),
  created_at: instant,
  updated_at: instant,
  /** The state of its last run. */
  state: z.enum(['idle', 'queued', 'running', 'waiting', 'completed', 'failed', 'cancelled']),
})

/** `GET /api/sessions?cursor&limit`, what was used last first; `next` is the `cursor` of the next page. */
export const sessionListQuerySchema = z.strictObject({
  cursor: z.string().max(200).optional(),
  limit: z.coerce.number().int().min(1).max(100).default(50),
})
export const sessionListSchema = z.object({ sessions: z.array(sessionSchema), next: z.string().nullable() })

/** `POST /api/sessions` → 201 sessionSchema; `PATCH /api/sessions/:id` → sessionSchema; `DELETE` → 204. */
export const sessionBodySchema = z.strictObject({ title: z.string().trim().min(1).max(200).optional() })
export const sessionPatchSchema = z.strictObject({ title: z.string().trim().min(1).max(200) })

export const toolCallSchema = z.object({
  /** `1.2` is the second call of the first turn: unique in its run. */
  call: z.string(),
  tool: z.string(),
  arguments: json,
  /** Whether somebody has to agree before. */
  needsApproval: z.boolean(),
})

/** A piece of the conversation that is kept. */
export const messageSchema = z.object({
  message_id: id,
  run_id: id,
  created_at: instant,
  content: z.discriminatedUnion('role', [
    z.object({ role: z.literal('user'), text: z.string() }),
    z.object({
      role: z.literal('assistant'),
      turn: z.number(),
      text: z.string(),
      reasoning: z.string(),
      toolCalls: z.array(toolCallSchema),
    }),
    z.object({
      role: z.literal('tool'),
      call: z.string(),
      tool: z.string(),
      /** What it was called with at last, which somebody may have edited. */
      arguments: json,
      result: json,
      isError: z.boolean(),
    }),
  ]),
})

// Runs ---------------------------------------------------------------------------------------------------------------

/** `POST /api/runs` → 202 runStartedSchema */
export const runBodySchema = z.strictObject({
  session_id: id,
  message: z.string().trim().min(1).max(32_000),
  /** The same key once more is the same run: for a request whose answer was lost. */
  idempotency_key: z.string().min(1).max(200).optional(),
})
export const runStartedSchema = z.object({ run_id: id, status: z.literal('queued') })

export const RUN_STATUSES = ['queued', 'running', 'completed', 'failed', 'cancelled'] as const

/** `GET /api/runs/:id`; `POST /api/runs/:id/cancel` and `/retry` answer with it, too. */
export const runSchema = z.object({
  run_id: id,
  session_id: id,
  status: z.enum(RUN_STATUSES),
  /** It is running, and rests until somebody decides. */
  isWaiting: z.boolean(),
  isCancelRequested: z.boolean(),
  message: z.string(),
  error: z.string().nullable(),
  /** How often it was begun: more than once after a retry, or a worker that was lost. */
  tries: z.number(),
  created_at: instant,
  started_at: instant.nullable(),
  finished_at: instant.nullable(),
})

/** `GET /api/sessions/:id`: the conversation as it is kept. Runs oldest first; those that go on are followed. */
export const sessionDetailSchema = sessionSchema.extend({
  messages: z.array(messageSchema),
  runs: z.array(runSchema),
})

/**
 * `GET /api/runs/:id/events`: server-sent events. Each `data` is an event of the run as the history has it (`StoredEvent` of
 * `@coji/durably`), its `id` the `seq` of it, with which `Last-Event-ID` goes on; the last one is `event: done` with
 * `doneSchema`. The same runs are served to the hooks of `@coji/durably-react` by `createDurablyClient({ url: '/api/durably' })`,
 * where they may be read, cancelled and retried. `piecesOf(event)` of `pieces.ts` says what an event means for the chat.
 */
export const doneSchema = z.object({ status: z.string() })

// What a stream tells ------------------------------------------------------------------------------------------------

const call = z.string()

/** What the chat shows of a run, in order; `seq` is that of the event it comes from. */
export const pieceSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('state'), state: z.enum([...RUN_STATUSES, 'waiting']), error: z.string().nullable() }),
  /** The worker was lost, or given another task, and another one goes on. */
  z.object({ type: z.literal('taken-over') }),
  /** Begins a turn of the model, or begins it anew: what was told of this turn before does not count. */
  z.object({ type: z.literal('turn'), turn: z.number(), isRepeated: z.boolean() }),
  z.object({ type: z.literal('text'), turn: z.number(), text: z.string() }),
  z.object({ type: z.literal('reasoning'), turn: z.number(), text: z.string() }),
  /** The turn is over; this is all of it, as it is kept. */
  z.object({
    type: z.literal('turn-end'),
    turn: z.number(),
    text: z.string(),
    reasoning: z.string(),
    toolCalls: z.array(toolCallSchema),
  }),
  /** A turn failed, and is tried again or ends the run. */
  z.object({ type: z.literal('turn-failed'), turn: z.number(), error: z.string() }),
  /** Somebody has to decide: `POST /api/approvals/:run_id/:name`. */
  z.object({ type: z.literal('asked'), call, name: z.string(), why: z.enum(['approval', 'interrupted']) }),
  z.object({
    type: z.literal('decided'),
    call,
    name: z.string(),
    decision: z.enum(['approve', 'refuse', 'stop']),
    arguments: json.optional(),
    reason: z.string().nullable(),
  }),
  z.object({ type: z.literal('tool-start'), call }),
  /** Its outcome was lost with the worker; `asked` follows. */
  z.object({ type: z.literal('tool-interrupted'), call }),
  z.object({ type: z.literal('tool-result'), call, result: json, isError: z.boolean() }),
])

// What waits for somebody --------------------------------------------------------------------------------------------

export const approvalSchema = z.object({
  run_id: id,
  session_id: id,
  session_title: z.string(),
  /** The name of the wait, for the address of the decision. */
  name: z.string(),
  why: z.enum(['approval', 'interrupted']),
  call,
  tool: z.string(),
  arguments: json,
  since: instant,
})

/** `GET /api/approvals`: everything that waits for who asks, newest first. */
export const approvalListSchema = z.object({ approvals: z.array(approvalSchema) })

/**
 * `POST /api/approvals/:run_id/:name` → 200 `{ ok: true }`; 409 when it was decided before or the run has ended, 422 when the
 * edited arguments are none of the tool. `refuse`: the model is told, with `reason`. `stop`: the run ends.
 */
export const decisionBodySchema = z.discriminatedUnion('decision', [
  z.strictObject({ decision: z.literal('approve'), arguments: json.optional() }),
  z.strictObject({ decision: z.literal('refuse'), reason: z.string().max(2000).optional() }),
  z.strictObject({ decision: z.literal('stop') }),
])
export const decisionAnswerSchema = z.object({ ok: z.literal(true) })

/** `POST /api/approvals/:run_id/:name/link`: addresses that decide without a login, once, for mail and chat. */
export const approvalLinkSchema = z.object({ approve_url: z.url(), refuse_url: z.url(), expires_at: instant })

// Files of a session -------------------------------------------------------------------------------------------------

/** `GET /api/sessions/:id/files`; `GET /api/sessions/:id/files/<path>` downloads one, always as an attachment. */
export const fileListSchema = z.object({
  files: z.array(z.object({ path: z.string(), size: z.number(), updated_at: instant })),
})

// The old contract ---------------------------------------------------------------------------------------------------

/**
 * `POST /api/chat/:sessionId`: server-sent events. First `event: run` with `runStartedSchema`, then for each event of the run the
 * same frames as `GET /api/runs/:id/events`, last `event: done`. A session that is not there is made.
 */
export const chatBodySchema = z.strictObject({ message: runBodySchema.shape.message })

export type Problem = z.output<typeof problemSchema>
export type User = z.output<typeof userSchema>
export type Me = z.output<typeof meSchema>
export type Entrance = z.output<typeof entranceSchema>
export type Settings = z.output<typeof settingsSchema>
export type SettingsBody = z.input<typeof settingsBodySchema>
export type Connection = z.output<typeof connectionSchema>
export type ToolList = z.output<typeof toolListSchema>
export type Session = z.output<typeof sessionSchema>
export type SessionList = z.output<typeof sessionListSchema>
export type SessionDetail = z.output<typeof sessionDetailSchema>
export type ToolCall = z.output<typeof toolCallSchema>
export type Message = z.output<typeof messageSchema>
export type MessageContent = Message['content']
export type RunView = z.output<typeof runSchema>
export type Piece = z.output<typeof pieceSchema>
export type Approval = z.output<typeof approvalSchema>
export type Decision = z.output<typeof decisionBodySchema>
export type FileList = z.output<typeof fileListSchema>
